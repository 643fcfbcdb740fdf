// Whatever is wrong with the input: exit code 2, one line on stderr, nothing on stdout.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/cli/call.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using Arguments = std::vector<std::string>;

struct Bad {
  Arguments arguments;
  std::string says;  // a fragment of the message
};

void check_refused(const std::vector<Bad>& cases) {
  for (const Bad& bad : cases) {
    std::string line;
    for (const std::string& word : bad.arguments) line += word.substr(0, 80) + " ";
    CAPTURE(line);
    const test::Call result = test::call(bad.arguments);
    CAPTURE(result.err);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(test::line_count(result.err) == 1);
    CHECK(result.err.size() < 700);
    CHECK(result.err.find(bad.says) != std::string::npos);
  }
}

std::vector<Bad> bad_commands() {
  std::vector<Bad> cases = {
      {{}, "no command, expected one of params, plan"},
      {{""}, "\"\" is no command"},
      {{"plna", "gpt2"}, "nearest name: plan"},
      {{"PLAN", "gpt2"}, "\"PLAN\" is no command"},
      {{"--versoin"}, "nearest name: --version"},
      {{"help", "nothing"}, "\"nothing\" is no command"},
      {{"help", "plan", "params"}, "[help] unexpected argument \"params\", expected one command"},
      {{"--help", "--help", "plan"}, "[help] unexpected argument \"plan\", expected none"},
      {{"--version", "now"}, "[--version] unexpected argument \"now\", expected none"},
      {{"plan"}, "MODEL is missing"},
      {{"plan", "gpt2", "gpt2-medium"}, "unexpected argument \"gpt2-medium\""},
      {{"models", "gpt2"}, "unexpected argument \"gpt2\", expected none"},
      {{"plan", "gpt2", "--bach", "2"},
       "[--bach] is no option of plimsoll plan. Hint: nearest "
       "name: --batch"},
      {{"plan", "gpt2", "-b", "2"}, "[-b] is no option"},
      {{"plan", "gpt2", "--json=yes"}, "[--json] takes no value"},
      {{"params", "gpt2", "--batch", "2"}, "[--batch] is no option of plimsoll params"},
      {{"plan", "gpt2", "--batch"}, "[--batch] has no value"},
      {{"plan", "gpt2", "--batch="}, "[--batch] has an empty value"},
      {{"plan", "gpt2", "--batch", "2", "--batch", "3"}, "[--batch] is given more than once"},
  };
  return cases;
}

std::vector<Bad> bad_numbers() {
  std::vector<Bad> cases;
  for (const char* text : {"0", "-1", "1e3", "1k", "0x10", "1.0", " 4", "4 ", "+4", "", "two",
                           "99999999999999999999", "2000000000000", "NaN", "1,000"}) {
    cases.push_back({{"plan", "gpt2", "--batch", text}, "[--batch] \""});
  }
  cases.push_back({{"plan", "gpt2", "--accumulate", "100000"}, "from 1 to 65536"});
  cases.push_back({{"plan", "gpt2", "--threads", "0"}, "[--threads] \"0\""});
  cases.push_back({{"plan", "gpt2", "--seq", "0"}, "[--seq] \"0\""});
  cases.push_back({{"plan", "gpt2", "--seq", "1025"}, "at most 1024 (the model's learned"});
  for (const char* text : {"1", "-0.1", "nan", "inf", "0.1x", "0x0.8", "1e-1", "half"}) {
    cases.push_back({{"plan", "gpt2", "--dropout", text}, "[--dropout] \""});
  }
  for (const char* text : {"24", "24Gib", "GiB", "-1GiB", "0GiB", "99999999999GiB", "1.5GiB"}) {
    if (std::string(text) == "24") continue;
    cases.push_back({{"measure", "minigpt:", "--bisect", text}, "[--bisect] \""});
  }
  cases.push_back({{"measure", "minigpt:", "--steps", "1"}, "[--steps] \"1\""});
  cases.push_back({{"measure", "minigpt:", "--sweep", "depth"}, "expected seq or width"});
  cases.push_back({{"params", "gpt2", "--against", "-5"}, "[--against] \"-5\""});
  cases.push_back({{"params", "gpt2", "--against", "1e8"}, "[--against] \"1e8\""});
  cases.push_back(
      {{"params", "gpt2", "--against", "no.safetensors"}, "expected a parameter count"});
  return cases;
}

Bad refused_value(const std::string& option, const std::string& value, const std::string& says) {
  return {{"plan", "gpt2", option, value}, "[" + option + "] " + says};
}

std::vector<Bad> bad_choices() {
  return {
      refused_value(
          "--precision", "fp31",
          "\"fp31\", expected fp64, fp32, bf16, fp16, mixed, autocast, zero-paper, megatron. "
          "Hint"),
      refused_value("--precision", "FP32", "\"FP32\""),
      {{"plan", "cnn:", "--precision", "autocast"}, "autocast of a cnn is not known"},
      {{"plan", "cnn:", "--precision", "zero-paper"}, "an image network with precision zero-paper"},
      refused_value("--optimizer", "adam", "\"adam\", expected adamw"),
      refused_value("--optimizer-impl", "torch", "\"torch\", expected plimsoll"),
      refused_value("--attention", "eager", "attention=eager is transformers' own"),
      refused_value("--attention", "efficient", "attention=efficient does not exist on cpu"),
      refused_value("--checkpoint", "blocks", "\"blocks\", expected none"),
      {{"plan", "cnn:", "--semantics", "hf"}, "semantics=hf is not known for cnn"},
      refused_value("--backend", "tpu", "\"tpu\", expected cpu, cuda"),
      refused_value("--targets", "same", "\"same\", expected separate, shared"),
      refused_value("--state-dtype", "fp16", "fp16 with precision fp32, expected fp32 or bf16"),
      refused_value("--loss-dtype", "int8", "\"int8\", expected"),
      refused_value("--mode", "decoding", "\"decoding\", expected train, prefill, decode"),
      {{"fit", "gpt2", "--device", "l4", "--mode", "decode"},
       "[--mode] decode is planned by plan and explain alone, expected train"},
      {{"measure", "gpt2", "--mode", "prefill"}, "expected train"},
      {{"report", "gpt2", "--out", "r.html", "--mode", "prefill"}, "expected train"},
      {{"plan", "cnn:", "--mode", "prefill"}, "prefill of an image network, expected train"},
      {{"plan", "gpt2", "--mode", "prefill", "--semantics", "hf"}, "hf with mode prefill"},
      {{"plan", "gpt2", "--mode", "prefill", "--optimizer", "sgd"},
       "[--optimizer] is of training, expected none with mode prefill"},
      {{"plan", "gpt2", "--mode", "decode", "--zero", "3"}, "--ranks 1 --zero 0"},
      {{"plan", "gpt2", "--mode", "decode", "--ranks", "2"}, "[--ranks] mode decode is planned"},
      {{"plan", "gpt2", "--mode", "decode", "--hold-logits"}, "[--hold-logits] is of training"},
      {{"plan", "gpt2", "--mode", "decode", "--lora", "rank=4,targets=q"}, "[--lora]"},
      {{"plan", "gpt2", "--mode", "decode", "--precision", "megatron"}, "a formula of training"},
      {{"plan", "gpt2", "--mode", "decode", "--context", "0"}, "[--context] \"0\", expected a"},
      {{"plan", "gpt2", "--mode", "decode", "--context", "2048"}, "[--context] context=2048"},
      {{"plan", "gpt2", "--mode", "decode", "--kv-dtype", "fp64"},
       "[--kv-dtype] \"fp64\", expected fp16, bf16, fp32, fp8, int8"},
      {{"plan", "gpt2", "--mode", "prefill", "--context", "5"},
       "[--context] only decoding has cached tokens, expected --mode decode"},
      refused_value("--ranks", "0", "\"0\", expected a whole number from 1 to 65536"),
      refused_value("--zero", "4", "\"4\", expected a whole number from 0 to 3"),
      refused_value("--prefetch", "-1", "\"-1\", expected a whole number from 0 to 1024"),
      {{"plan", "gpt2", "--ranks", "2", "--optimizer-impl", "torch-cpp"},
       "[--optimizer-impl] implementation torch-cpp steps whole parameters of one process"},
      {{"measure", "gpt2", "--ranks", "2", "--fit-batch"}, "[--ranks] ranks=2 with a study"},
      {{"plan", "gpt2", "--device", "h100"}, "names: h100-80g, h100-pcie-80g"},
      {{"plan", "gpt2", "--device", "rtx4090"}, "nearest name: rtx-4090"},
      refused_value("--device", "24Gib", "\"24Gib\", expected a size"),
      refused_value("--device", "-24GiB", "\"-24GiB\", expected a size"),
      refused_value("--device", "0GiB", "\"0GiB\", expected a size"),
      refused_value("--device", "99999999999GiB", "\"99999999999GiB\""),
      refused_value("--reserve", "1GiB", "reserve=1073741824 without a device"),
      {{"plan", "gpt2", "--device", "t4", "--reserve", "16GiB"}, "expected less than the"},
      {{"plan", "gpt2", "--device", "t4", "--reserve", "-1GiB"}, "[--reserve] \"-1GiB\""},
      {{"devices", "t5"}, "[devices] \"t5\""},
      {{"devices", "t4", "l4"}, "unexpected argument \"l4\", expected one [NAME]"},
      refused_value("--context", "5", "only decoding has cached tokens"),
      refused_value("--kv-dtype", "fp8", "training has no cache, expected --mode prefill or"),
      refused_value("--master-dtype", "fp32", "fp32 with precision fp32, expected none"),
      refused_value("--grad-dtype", "bf16", "bf16 with precision fp32, expected fp32"),
      refused_value("--grad-dtype", "int8", "\"int8\", expected fp64"),
      refused_value("--master-dtype", "half", "\"half\", expected none, fp64"),
      {{"plan", "gpt2", "--precision", "bf16", "--master-dtype", "fp64"}, "expected fp32"},
      {{"plan", "gpt2", "--precision", "mixed", "--grad-dtype", "fp16"}, "expected bf16 or fp32"},
      {{"plan", "gpt2", "--precision", "mixed", "--ranks", "2", "--grad-dtype", "bf16"},
       "bf16 with precision mixed, expected fp32. Hint: sums over ranks are never rounded back"},
      {{"plan", "gpt2", "--loss-dtype", "bf16"}, "bf16 with precision fp32, expected fp32 or fp64"},
      {{"plan", "gpt2", "--precision", "zero-paper", "--optimizer", "sgd"},
       "another than adamw with precision zero-paper"},
      {{"plan", "gpt2", "--precision", "megatron", "--state-dtype", "bf16"}, "an overridden dtype"},
      {{"plan", "gpt2", "--precision", "megatron", "--freeze", "head"}, "frozen parameters"},
      {{"measure", "minigpt:", "--precision", "fp16"}, "fp16 is only calculated, and measure runs"},
      {{"measure", "minigpt:", "--precision", "megatron"}, "it is formulas of P, G and O"},
      {{"measure", "minigpt:", "--optimizer", "adafactor"}, "adafactor is only calculated"},
      {{"measure", "minigpt:", "--optimizer", "adamw-8bit"}, "adamw-8bit is only calculated"},
      {{"plan", "gpt2", "--optimizer", "adafactor", "--optimizer-impl", "plimsoll"},
       "optimizer=adafactor has no implementation plimsoll, expected torch-python"},
      {{"plan", "gpt2", "--optimizer", "adamw", "--optimizer-impl", "bitsandbytes"},
       "optimizer=adamw has no implementation bitsandbytes"},
      {{"plan", "gpt2", "--optimizer", "adamw-8bit", "--state-dtype", "bf16"}, "[--state-dtype]"},
      {{"plan", "gpt2", "--optimizer", "adafactor", "--ranks", "2"}, "[--optimizer-impl]"},
      {{"plan", "gpt2", "--backend", "cuda", "--attention", "flash"}, "does not exist on cuda"},
      {{"plan", "gpt2", "--optimizer", "lion", "--optimizer-impl", "torch-cpp"}, "lion has no"},
      {{"plan", "cnn:", "--seq", "8"}, "reads no tokens"},
      {{"plan", "cnn:", "--attention", "math"}, "has no attention"},
      {{"plan", "cnn:", "--dropout", "0.5"}, "no dropout"},
  };
}

std::vector<Bad> bad_costs() {
  return {
      {{"math"}, "[math] WHAT is missing"},
      {{"math", "dot"}, "0 sizes given, expected 1: P"},
      {{"math", "matmul", "2", "3"}, "[math matmul] 2 sizes given, expected 3: N P M"},
      {{"math", "dot", "1", "2"}, "2 sizes given, expected 1"},
      {{"math", "dot", "0"}, "[math dot P] \"0\", expected a whole number from 1"},
      {{"math", "dot", "-5"}, "[math dot P] \"-5\""},
      {{"math", "dot", "1e6"}, "[math dot P] \"1e6\""},
      {{"math", "dot", "2000000000000"}, "[math dot P]"},
      {{"math", "matmul", "1000000000000", "1000000000000", "1000000000000"}, "64 bits"},
      {{"math", "dot", "5", "--batch", "2"}, "[--batch] describes a model's job"},
      {{"math", "dot", "5", "--dtype", "fp7"}, "[--dtype] \"fp7\", expected fp64"},
      {{"math", "dot", "5", "--device", "h100"}, "names: h100-80g"},
      {{"math", "dto", "5"}, "unexpected argument \"5\", expected one MODEL"},
      {{"math", "gpt3"}, "nearest name: gpt2"},
      {{"math", "gpt2", "--dtype", "bf16"}, "[--dtype] belongs to single products"},
      {{"math", "cnn:"}, "is an image network"},
      {{"math", "gpt2", "--tokens-per-second", "0"}, "[--tokens-per-second] \"0\""},
      {{"math", "gpt2", "--tokens-per-second", "inf"}, "expected a number above 0"},
      {{"math", "gpt2", "--batch", "0"}, "[--batch] \"0\""},
      {{"infer"}, "[infer] MODEL is missing"},
      {{"infer", "gpt2", "8"}, "unexpected argument \"8\""},
      {{"infer", "cnn:"}, "is an image network"},
      {{"infer", "gpt2", "--context", "0"}, "[--context] \"0\""},
      {{"infer", "gpt2", "--context", "-1"}, "[--context] \"-1\""},
      {{"infer", "gpt2", "--kv-dtype", "fp7"}, "[--kv-dtype] \"fp7\""},
      {{"infer", "gpt2", "--dtype", ""}, "[--dtype]"},
      {{"infer", "gpt2", "--reserve", "1GiB"}, "expected --device"},
      {{"infer", "gpt2", "--device", "t44"}, "nearest name: t4"},
      {{"infer", "llama-3-70b", "--batch", "1000000000000", "--context", "1000000000000"},
       "64 bits"},
      {{"explain"}, "[explain] MODEL is missing"},
      {{"explain", "gpt2", "posts.Q"}, "nearest name: posts."},
      {{"explain", "gpt2", ""}, "[explain] \"\" is no term"},
      {{"explain", "gpt2", "posts.P", "posts.G"}, "unexpected argument \"posts.G\""},
      {{"explain", "gpt2", "--seq", "2048"}, "at most 1024"},
  };
}

std::vector<Bad> bad_reports() {
  return {
      {{"report"}, "[report] MODEL is missing"},
      {{"report", "gpt2"}, "[--out] is missing, expected a name for the HTML file"},
      {{"report", "gpt2", "--out", ""}, "[--out] \"\" ends in no name of a file"},
      {{"report", "gpt2", "--out", "tests"}, "[--out] \"tests\" is a folder, expected a file"},
      {{"report", "gpt2", "--out", "tests/"}, "[--out] \"tests/\" is a folder"},
      {{"report", "gpt2", "--out", "/dev/null"}, "[--out] \"/dev/null\" is a device"},
      {{"report", "gpt2", "--out", "no/such/r.html"}, "[--out] \"no/such\" is no folder"},
      {{"report", "gpt2", "--out", "README.md/r.html"}, "[--out] \"README.md\" is no folder"},
      {{"report", "gpt2", "--out", "build/r.html", "--trace", "build/../build/r.html"},
       "[--trace] is the file of --out"},
      {{"report", "gpt2", "--out", "build/r.html", "--measured", "no.json"}, "no such file"},
      {{"report", "gpt2", "--out", "build/r.html", "--measured", "README.md"}, "[README.md"},
      {{"report", "gpt2", "--out", "build/r.html", "--seq", "2048"}, "at most 1024"},
  };
}

std::vector<Bad> bad_models() {
  std::vector<Bad> cases = {
      {{"plan", ""}, "[MODEL] is empty"},
      {{"plan", "gpt3"}, "nearest name: gpt2"},
      {{"plan", "no/such/config.json"}, "no such file or folder"},
      {{"plan", "/dev/null"}, "[/dev/null]"},
      {{"plan", "minigpt:d=129"}, "[minigpt:heads]"},
      {{"plan", "minigpt:d=128,d=64"}, "given twice"},
      {{"plan", "minigpt:depth=4"}, "unknown key"},
      {{"plan", "minigpt:d=-4"}, "whole number of at least 1"},
      {{"plan", "minigpt:d=99999999999999999999"}, "at most 2^51"},
      {{"plan", "minigpt:d=1000000000000,V=1000000000000,heads=1"}, "parameters"},
      {{"plan", "minigpt:s=9007199254740992,d=1,heads=1,V=2"}, "expected"},
      {{"plan", "minigpt:,"}, "minigpt"},
      {{"plan", "cnn:channels=16--24"}, "[cnn:channels]"},
      {{"plan", "cnn:norm=layer"}, "expected batch or none"},
      {{"plan", "tests"}, "folder without config.json"},
      {{"plan", "minigpt:d=4096,L=64,s=1000000000", "--batch", "1000000000000"}, "beyond any"},
      {{"plan", std::string(100000, 'x')}, "100000 bytes, expected at most 4096"},
      {{"plan", "line\nbreak"}, "line\\x0abreak"},
  };
  return cases;
}

struct BadFile {
  std::string text;
  std::string says;
};

std::vector<BadFile> bad_configs() {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "[";
  return {
      {"", "is empty"},
      {"{", "ends too early"},
      {"[]", "expected a JSON object"},
      {"{}", ":/model_type] missing"},
      {R"({"model_type": "llama",)", "ends too early"},
      {R"({"model_type": "no_such_model"})", "is not known"},
      {R"({"model_type": "lama"})", "nearest name: llama"},
      {R"({"model_type": 3})", "expected a string"},
      {R"({"model_type": "llama", "hidden_size": -1})", ":/hidden_size] -1"},
      {R"({"model_type": "llama", "hidden_size": 1e3})", ":/hidden_size]"},
      {R"({"model_type": "llama", "hidden_size": "64"})", ":/hidden_size]"},
      {R"({"model_type": "llama", "num_attention_heads": 33})", "does not divide"},
      {R"({"model_type": "llama", "num_key_value_heads": 5})", "does not divide"},
      {R"({"model_type": "llama", "vocab_size": 9007199254740992})", "2^53"},
      {R"({"model_type": "llama", "vocab_size": 99999999999999999999})", "2^53"},
      {R"({"model_type": "llama", "num_hidden_layers": 100000})", "from 1 to 10000"},
      {R"({"model_type": "llama", "rms_norm_eps": NaN})", "NaN is no JSON value"},
      {R"({"model_type": "gpt2", "n_embd": 770})", "does not divide"},
      {R"({"model_type": "gpt2", "n_embd": 64, "hidden_size": 65})", "but n_embd is 64"},
      {"{\"model_type\": \"gpt2\xff\"}", "is not UTF-8"},
      {std::string("\0\0\0\0", 4), "config.json"},
      {deep, "nested deeper"},
  };
}

TEST_CASE("commands and options that are wrong") { check_refused(bad_commands()); }

TEST_CASE("numbers that are wrong") { check_refused(bad_numbers()); }

// What learns, and the loss in chunks.
std::vector<Bad> bad_adaptations() {
  const std::string gpt = "minigpt:d=128,L=4,V=1000,s=64,heads=4";
  std::vector<Bad> cases;
  const auto add = [&](const char* option, const char* value, const char* says) {
    cases.push_back({{"plan", gpt, option, value}, says});
  };
  add("--lora", "rank=0", "[--lora] \"0\", expected a whole number from 1");
  add("--lora", "rank=-8", "[--lora] \"-8\"");
  add("--lora", "rank=99999999999999999999", "[--lora] \"99999999999999999999\"");
  add("--lora", "rank=129", "rank=129, expected 1 to the width 128");
  add("--lora", "rank=8,rank=8", "rank is given more than once");
  add("--lora", "rank=8,targets=qkv,qkv", "target qkv is given more than once");
  add("--lora", "rank=8,targets=", "target \"\", expected qkv, o, up, down, all");
  add("--lora", "rank=8,targets=q", "targets=q is not a matrix of");
  add("--lora", "rank=8,targets=dwn", "nearest name: down");
  add("--lora", "rank=8,alpha=nan", "[--lora] \"nan\"");
  add("--lora", "rank=8,alpha=0", "[--lora] \"0\"");
  add("--lora", "targets=qkv", "has no rank, expected rank=R");
  add("--lora", "8", "[--lora] \"8\", expected rank=R, alpha=A, targets=NAMES");
  add("--lora", "rank=8,dropout=0.1", "[--lora] \"dropout\", expected rank, alpha, targets");
  add("--freeze", "embedings", "nearest name: embeddings");
  add("--freeze", "layers:0-9", "[--freeze] \"9\", expected a whole number from 0 to 3");
  add("--freeze", "layers:3-1", "[--freeze] \"1\"");
  add("--freeze", "layers:-1", "[--freeze] \"\"");
  add("--freeze", "layers:", "[--freeze] \"\"");
  add("--freeze", "head,head", "\"head\" is given more than once");
  add("--freeze", ",", "[--freeze] \"\"");
  add("--freeze", "*.nothing", "'*.nothing' matches no parameter of the model");
  add("--freeze", "*", "every parameter is frozen, expected some that learn");
  for (const char* count : {"0", "-1", "1e2", "65537", "99999999999999999999", "x"}) {
    add("--loss-chunks", count, "[--loss-chunks] \"");
  }
  add("--loss-chunks", "65", "loss-chunks=65, expected 1 to 64");
  cases.push_back({{"plan", gpt, "--loss-chunks", "4", "--hold-logits"}, "no logits to hold"});
  cases.push_back({{"plan", "llama-3-8b", "--loss-chunks", "4", "--semantics", "hf"},
                   "loss-chunks=4 with semantics hf"});
  cases.push_back({{"plan", "llama-3-8b", "--loss-chunks", "4", "--ranks", "2", "--zero", "3",
                    "--reshard-root"},
                   "expected no --reshard-root"});
  cases.push_back({{"plan", "cnn:channels=4", "--loss-chunks", "2"}, "of a cnn, expected 1"});
  cases.push_back({{"plan", "cnn:channels=4", "--lora", "rank=2"}, "[--lora]"});
  cases.push_back({{"plan", "cnn:channels=4", "--freeze", "layers"}, "the model has no layers"});
  cases.push_back({{"math", gpt, "--lora", "rank=2"}, "is not known to math"});
  cases.push_back({{"params", gpt, "--freeze", "layers:9"}, "[--freeze] \"9\""});
  return cases;
}

TEST_CASE("adapters, frozen parts and chunks that do not exist") {
  check_refused(bad_adaptations());
}

TEST_CASE("choices that are wrong or not in this version") { check_refused(bad_choices()); }

TEST_CASE("sizes, terms and formats that are wrong in math, infer and explain") {
  check_refused(bad_costs());
}

TEST_CASE("files that a report cannot be written to or made from") { check_refused(bad_reports()); }

TEST_CASE("models that are wrong") { check_refused(bad_models()); }

TEST_CASE("configs that are wrong, for every command that reads one") {
  const test::TemporaryFolder folder;
  for (const BadFile& bad : bad_configs()) {
    const std::string file = folder.write("config.json", bad.text);
    check_refused({{{"plan", file}, bad.says},
                   {{"plan", folder.path()}, bad.says},
                   {{"params", file, "--json"}, bad.says},
                   {{"measure", file}, bad.says}});
  }
}

TEST_CASE("weights files that are wrong") {
  const test::TemporaryFolder folder;
  const std::string empty = folder.write("empty.safetensors", "");
  const std::string cut = folder.write("cut.safetensors", std::string("\x10\0\0\0\0\0\0\0{}", 10));
  const std::string huge = folder.write("huge.safetensors", std::string(8, '\xff'));
  check_refused({{{"params", empty}, "[" + empty},
                 {{"params", cut}, "[" + cut},
                 {{"params", huge}, "[" + huge},
                 {{"params", folder.path()}, folder.path()},
                 {{"params", "gpt2", "--against", cut}, "[" + cut},
                 {{"plan", cut}, "holds weights, expected a config.json"}});
}

}  // namespace
}  // namespace plimsoll
