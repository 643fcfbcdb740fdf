// Every flaw of a config.json gives one Error that names the place, the value and the expectation.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/formats/config.hpp"

namespace {

using plimsoll::formats::read_config;

struct BadConfig {
  std::string text;
  std::string where;  // after "config.json"
  std::string what;   // fragment of the whole message
};

std::string llama_config(const std::string& more) {
  return R"({"model_type": "llama", )" + more + "}";
}
std::string gpt2(const std::string& more) { return R"({"model_type": "gpt2", )" + more + "}"; }

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::vector<BadConfig> broken_texts() {
  return {
      {"", "", "is empty"},
      {" \n\t", "", "is empty"},
      {"[1, 2]", "", "[1,2], expected a JSON object"},
      {"null", "", "null, expected a JSON object"},
      {"42", "", "42, expected a JSON object"},
      {"\"llama\"", "", "expected a JSON object"},
      {"{", "", "the text ends too early"},
      {R"({"model_type": "llama", "hidden_size": 40)", ":/hidden_size", "ends too early"},
      {R"({"model_type": "llama", "hidden_size": )", ":/hidden_size", "ends too early"},
      {R"({"model_type": "lla)", ":/model_type", "missing closing quote"},
      {R"({"model_type": "llama",})", ":/model_type", "line 1, column 24"},
      {R"({"model_type": "llama"} x)", "", "found x"},
      {R"({"model_type": "llama"}{})", "", "expected end of input"},
      {"{\n  \"hidden_size\": NaN\n}", ":/hidden_size",
       "at line 2, column 18: NaN is no JSON value"},
      {llama_config(R"("rope_theta": Infinity)"), ":/rope_theta", "Infinity is no JSON value"},
      {llama_config(R"("rope_theta": -Infinity)"), ":/rope_theta", "expected a finite number"},
      {llama_config(R"("rope_theta": 1e999)"), ":/rope_theta", "out of range"},
      {llama_config(R"("hidden_size": 0x10)"), ":/hidden_size", "is not valid JSON"},
      {llama_config("'hidden_size': 4"), ":/model_type", "is not valid JSON"},
      {llama_config("\"a\": \"\xff\""), "", "is not UTF-8 at line 1, column 31: byte 0xff"},
      {"\xff\xfe{\0}", "", "is not UTF-8 at line 1, column 1"},
      {llama_config("\"a\": \"\xed\xa0\x80\""), "", "is not UTF-8"},
      {llama_config(R"("a": "\ud800")"), ":/a", "is not valid JSON"},
      {llama_config("\"a\": \"x\ny\""), ":/a", "is not valid JSON"},
      {llama_config(R"("hidden_size": 64, "hidden_size": 64)"), ":/hidden_size", "is given twice"},
      {llama_config(R"("rope_scaling": {"a": [1, {"b": 1, "b": 2}]})"), ":/rope_scaling/a/1/b",
       "twice"},
      {repeated("[", 100000), "", "nested deeper than 64 levels"},
      {llama_config("\"a\": " + repeated("{\"b\": ", 80) + "1" + repeated("}", 80)), "",
       "nested deeper than 64 levels"},
  };
}

std::vector<BadConfig> bad_model_types() {
  return {
      {"{}", ":/model_type", "missing, expected a model type such as gpt2, llama or mistral"},
      {R"({"model_type": null})", ":/model_type", "missing"},
      {R"({"model_type": 7})", ":/model_type", "7, expected a string"},
      {R"({"model_type": "gpt2", "llm": {"n_embd": 64}})", ":/llm", "holds the keys of a gpt2"},
      {R"({"model_type": "lama"})", ":/model_type", "nearest name: llama"},
      {R"({"model_type": "llama"})", "", "has no key of a llama model but model_type"},
      {R"({"model_type": "llama", "eos_token_id": 2, "hello": [1]})", "",
       "expected its sizes. Hint: with architectures"},
      {R"({"model_type": "lama"})", ":/model_type",
       "\"lama\" is not known, expected a model type "},
      {R"({"model_type": "mixtral", "vocab_size": 9})", ":/model_type",
       "the timeline of \"mixtral\" cannot be planned yet"},
      {R"({"model_type": "mixtral", "vocab_size": 9})", ":/model_type",
       "`plimsoll params` counts its parameters"},
      {R"({"model_type": "llava", "text_config": {}})", ":/model_type", "\"llava\" is not known"},
      {R"({"model_type": "llava", "text_config": {"model_type": "llama", "hidden_size": -1}})",
       ":/text_config/hidden_size", "-1, expected"},
  };
}

std::vector<BadConfig> bad_values() {
  return {
      {llama_config(R"("hidden_size": "4096")"), ":/hidden_size",
       "\"4096\", expected a whole number"},
      {llama_config(R"("hidden_size": true)"), ":/hidden_size", "true, expected a whole number"},
      {llama_config(R"("hidden_size": [1])"), ":/hidden_size", "[1], expected a whole number"},
      {llama_config(R"("hidden_size": -4096)"), ":/hidden_size",
       "-4096, expected a whole number of at"},
      {llama_config(R"("hidden_size": 0)"), ":/hidden_size",
       "0, expected a whole number of at least 1"},
      {llama_config(R"("hidden_size": 40.5)"), ":/hidden_size", "40.5, expected a whole number"},
      {llama_config(R"("hidden_size": 4096.0)"), ":/hidden_size",
       "4096.0, expected a whole number"},
      {llama_config(R"("vocab_size": 9007199254740993)"), ":/vocab_size", "expected at most 2^53"},
      {llama_config(R"("vocab_size": 18446744073709551615)"), ":/vocab_size",
       "expected at most 2^53"},
      {llama_config(R"("vocab_size": 99999999999999999999)"), ":/vocab_size",
       "expected at most 2^53"},
      {llama_config(R"("vocab_size": -99999999999999999999)"), ":/vocab_size", "of at least 1"},
      {llama_config(R"("vocab_size": 9007199254740992)"), "", "expected at most 2^53"},
      {llama_config(R"("hidden_size": 4503599627370496, "head_dim": 64)"), "",
       "more than 2^63 parameters"},
      {llama_config(R"("num_hidden_layers": 1000000000)"), ":/num_hidden_layers",
       "from 1 to 10000"},
      {llama_config(R"("num_attention_heads": 33)"), ":/num_attention_heads", "33 does not divide"},
      {llama_config(R"("num_attention_heads": 8192)"), ":/num_attention_heads", "does not divide"},
      {llama_config(R"("num_key_value_heads": 5)"), ":/num_key_value_heads",
       "5 does not divide heads 32"},
      {llama_config(R"("num_key_value_heads": 0)"), ":/num_key_value_heads", "0, expected"},
      {llama_config(R"("head_dim": 127)"), ":/head_dim", "127, expected an even number"},
      {llama_config(R"("head_dim": -1)"), ":/head_dim", "-1, expected"},
      {llama_config(R"("intermediate_size": {})"), ":/intermediate_size",
       "{}, expected a whole number"},
      {llama_config(R"("tie_word_embeddings": 1)"), ":/tie_word_embeddings",
       "1, expected true or false"},
      {llama_config(R"("attention_bias": "no")"), ":/attention_bias",
       "\"no\", expected true or false"},
      {llama_config(R"("hidden_act": "sillu")"), ":/hidden_act", "nearest name: silu"},
      {llama_config(R"("hidden_act": "gelu_nwe")"), ":/hidden_act", "nearest name: gelu_new"},
      {llama_config(R"("hidden_act": 3)"), ":/hidden_act", "3, expected a string"},
      {llama_config(R"("rms_norm_eps": 0)"), ":/rms_norm_eps",
       "0, expected a finite number above 0"},
      {llama_config(R"("rms_norm_eps": "1e-5")"), ":/rms_norm_eps",
       "\"1e-5\", expected a finite number"},
      {llama_config(R"("rope_theta": -1)"), ":/rope_theta", "-1, expected a finite number above 0"},
      {llama_config(R"("rope_scaling": 4)"), ":/rope_scaling", "4, expected an object"},
      {llama_config(R"("rope_parameters": {"rope_theta": "x"})"), ":/rope_parameters/rope_theta",
       "\"x\", expected a finite number above 0"},
      {llama_config(R"("attention_dropout": 1.5)"), ":/attention_dropout",
       "1.5, expected a number from 0"},
      {R"({"model_type": "mistral", "sliding_window": 0})", ":/sliding_window", "0, expected"},
      {R"({"model_type": "mistral", "sliding_window": 5, "num_hidden_layers": 1000000000})",
       ":/num_hidden_layers", "from 1 to 10000"},
      {R"({"model_type": "gemma2", "num_hidden_layers": 2, "layer_types": ["full_attention"]})",
       ":/layer_types", "expected a list with an entry for each of the 2 layers"},
      {R"({"model_type": "qwen3", "num_hidden_layers": 1, "layer_types": ["linear_attention"]})",
       ":/layer_types/0", "expected full_attention or sliding_attention"},
      {R"({"model_type": "phi", "partial_rotary_factor": 1.5})", ":/partial_rotary_factor",
       "1.5, expected a number above 0"},
      {R"({"model_type": "cohere", "use_qk_norm": true})", ":/use_qk_norm", "not planned"},
      {R"({"model_type": "bert", "is_decoder": true})", ":/is_decoder", "expected an encoder"},
      {R"({"model_type": "falcon", "num_attention_heads": 70})", ":/num_attention_heads",
       "70 does not divide"},
      {gpt2(R"("n_embd": 770)"), ":/n_head", "12 does not divide width 770"},
      {gpt2(R"("n_embd": 5)"), ":/n_head", "12 does not divide width 5"},
      {gpt2(R"("n_embd": 768, "hidden_size": 1024)"), ":/hidden_size", "1024, but n_embd is 768"},
      {gpt2(R"("num_hidden_layers": -2)"), ":/num_hidden_layers", "-2, expected"},
      {gpt2(R"("n_inner": 1.5)"), ":/n_inner", "1.5, expected a whole number"},
      {gpt2(R"("n_positions": "many")"), ":/n_positions", "\"many\", expected"},
      {gpt2(R"("activation_function": "tanh")"), ":/activation_function", "expected gelu, "},
      {gpt2(R"("resid_pdrop": -0.1)"), ":/resid_pdrop", "-0.1, expected a number from 0 to 1"},
      {gpt2(R"("add_cross_attention": true)"), ":/add_cross_attention", "is not planned"},
  };
}

void check_refused(const std::vector<BadConfig>& cases) {
  for (const BadConfig& bad : cases) {
    CAPTURE(bad.text.substr(0, 200));
    const auto spec = read_config(bad.text, "config.json");
    REQUIRE_FALSE(spec);
    const std::string message = plimsoll::format_error(spec.error());
    CAPTURE(message);
    // An empty place stands for any: deep paths are long.
    const std::string place = "config.json" + bad.where;
    CHECK(spec.error().where.substr(0, place.size()) == place);
    if (!bad.where.empty()) CHECK(spec.error().where == place);
    CHECK(message.find(bad.what) != std::string::npos);
    CHECK(message.size() < 1000);
    CHECK(spec.error().code == plimsoll::ExitCode::kBadInput);
  }
}

TEST_CASE("texts that are no JSON object are refused") { check_refused(broken_texts()); }

TEST_CASE("model types that cannot be planned are refused") { check_refused(bad_model_types()); }

TEST_CASE("values of the wrong kind or size are refused") { check_refused(bad_values()); }

TEST_CASE("every truncation of a config is refused without a crash") {
  const std::string text =
      llama_config(R"("hidden_size": 64, "num_attention_heads": 4, "rope_scaling": {"type": "é"})");
  REQUIRE(read_config(text, "config.json"));
  for (std::size_t length = 0; length < text.size(); ++length) {
    CHECK_FALSE(read_config(text.substr(0, length), "config.json"));
  }
}

TEST_CASE("very long values and keys are cut in messages") {
  const std::string long_text(100000, 'x');
  for (const std::string& text :
       {llama_config("\"hidden_size\": \"" + long_text + "\""),
        llama_config("\"" + long_text + "\": 1, \"" + long_text + "\": 1")}) {
    const auto spec = read_config(text, "config.json");
    REQUIRE_FALSE(spec);
    CHECK(plimsoll::format_error(spec.error()).size() < 300);
  }
}

}  // namespace
