#include "tests/dist/trouble.hpp"

#include <chrono>
#include <cstring>
#include <exception>
#include <stdexcept>

#include <fmt/format.h>

namespace plimsoll::tests {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

namespace {

std::string thrown_by(const std::function<void()>& function) {
  try {
    function();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void require_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    require(text.find(part) != std::string::npos,
            fmt::format("expected a refusal with \"{}\", got \"{}\"", part, text));
  }
}

}  // namespace

void require_refused(const std::function<void()>& function,
                     std::initializer_list<const char*> parts) {
  require_parts(thrown_by(function), parts);
}

void set_value(const std::string& name, at::Tensor tensor) {
  const at::NoGradGuard no_grad;
  double phase = 0;
  for (char c : name) phase = 0.7 * phase + static_cast<unsigned char>(c) % 13;
  const at::Tensor places = at::arange(tensor.numel(), at::kDouble);
  tensor.copy_(at::sin(places * 1.3 + phase).mul(0.4).view(tensor.sizes()));
}

void set_values(torch::nn::Module& module) {
  for (const auto& item : module.named_parameters()) set_value(item.key(), item.value());
}

at::Tensor rows(at::IntArrayRef shape, int rank, int micro_batch) {
  std::int64_t count = 1;
  for (std::int64_t size : shape) count *= size;
  const at::Tensor places = at::arange(count, at::kDouble);
  return at::sin(places * (0.9 + 0.31 * rank) + 1.7 * micro_batch).to(at::kFloat).view(shape);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  return x.numel() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

double sum_over_ranks(Communicator& world, double value) {
  double sum = 0;
  world.all_reduce({&value, 1, comm::DType::kFloat64}, {&sum, 1, comm::DType::kFloat64}).wait();
  return sum;
}

// --- gradients ----------------------------------------------------------------------------------

namespace {

void add(Gradients& sums, const Gradients& more) {
  for (const auto& [name, gradient] : more) {
    const auto [seen, fresh] = sums.emplace(name, gradient);
    if (!fresh) seen->second = seen->second + gradient;
  }
}

Gradients gradients_of(torch::nn::Module& module, const at::Tensor& loss) {
  loss.backward();
  Gradients result;
  for (const auto& item : module.named_parameters()) {
    const at::Tensor& p = item.value();
    if (!p.requires_grad()) continue;
    const at::ScalarType sum = p.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    result.emplace(item.key(), p.grad().defined() ? p.grad().to(sum).clone()
                                                  : at::zeros(p.sizes(), p.options().dtype(sum)));
  }
  for (const at::Tensor& p : module.parameters()) p.mutable_grad().reset();
  return result;
}

}  // namespace

Gradients mean_gradients(torch::nn::Module& module, int ranks, const Loss& loss, int micro_batches,
                         bool once) {
  Gradients total;
  const int outer = once ? ranks : micro_batches;
  const int inner = once ? micro_batches : ranks;
  for (int i = 0; i < outer; ++i) {
    Gradients sums;
    for (int j = 0; j < inner; ++j) {
      add(sums, gradients_of(module, once ? loss(i, j) : loss(j, i)));
    }
    add(total, sums);
  }
  for (auto& [name, gradient] : total) {
    gradient = gradient.div(static_cast<double>(ranks) * micro_batches).detach();
  }
  return total;
}

void require_gradients(ShardedModule& sharded, const Gradients& expected, const std::string& what,
                       int micro_batches) {
  for (const auto& [name, gradient] : expected) {
    at::Tensor seen = sharded.gradient(name, micro_batches);
    if (!seen.defined()) seen = at::zeros_like(gradient);  // nobody has one, or it has no elements
    require(same_bits(seen, gradient),
            fmt::format("{}: the gradient of {} differs from one process", what, name));
  }
}

// --- models -------------------------------------------------------------------------------------

ZeroSettings at_stage(int stage) {
  ZeroSettings settings;
  settings.stage = static_cast<Stage>(stage);
  return settings;
}

namespace {

TinyModel tiny(const TinyShape& shape) {
  TinyModel model(shape);
  set_values(*model);
  return model;
}

at::Tensor loss_on(TinyModel& model, const TinyShape& shape, int rank, int micro_batch) {
  const Batch batch = batch_of(shape, 0, micro_batch, rank);
  return model->loss(batch.ids, batch.targets);
}

}  // namespace

ShardedTiny::ShardedTiny(Communicator& w, const ZeroSettings& settings, const TinyShape& s)
    : world(w), shape(s), plain(tiny(s)), model(tiny(s)), sharded(model, w, settings) {
  for (std::size_t i = 0; i < model->blocks.size(); ++i) {
    model->calls[i] = sharded.wrap(model->blocks[i]);
  }
  sharded.initialise();
}

at::Tensor ShardedTiny::loss(int rank, int micro_batch) {
  return loss_on(model, shape, rank, micro_batch);
}

at::Tensor ShardedTiny::run(int rank, int micro_batch, bool last) {
  return sharded.run([&] { return loss(rank, micro_batch); }, last);
}

Gradients ShardedTiny::expected(int micro_batches, bool once) {
  return mean_gradients(
      *plain, world.size(), [&](int rank, int m) { return loss_on(plain, shape, rank, m); },
      micro_batches, once);
}

// --- worlds of threads --------------------------------------------------------------------------

std::vector<std::string> in_threads(int ranks, const std::function<void(Communicator&)>& body,
                                    comm::Milliseconds timeout) {
  comm::ThreadsOptions options;
  options.timeout = timeout;
  options.arena_bytes = 1 << 26;
  const auto begin = comm::Clock::now();
  std::vector<std::string> messages;
  const auto one_thread = [&](Communicator& world) {
    at::set_num_threads(1);
    body(world);
  };
  for (const std::exception_ptr& error : comm::run_threads(ranks, one_thread, options)) {
    messages.push_back(error ? thrown_by([&] { std::rethrow_exception(error); }) : "");
  }
  require(comm::Clock::now() - begin < std::chrono::seconds(10), "a rank ended late");
  return messages;
}

void require_world_refuses(Communicator& world, const std::function<void(Communicator&)>& body,
                           std::initializer_list<const char*> parts, comm::Milliseconds timeout) {
  if (world.size() != 2) return;
  if (world.rank() == 0) {
    for (const std::string& message : in_threads(2, body, timeout)) require_parts(message, parts);
  }
  world.barrier().wait();
}

}  // namespace plimsoll::tests
