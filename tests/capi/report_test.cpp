// Reports through the C ABI: what is refused, what a report without a graph or times says.

#include "capi/calls.h"

namespace pyc::test {
namespace {

std::string report_of(const Model& model, const pyc_graph* graph, const pyc_report_facts* facts,
                      int32_t format = PYC_REPORT_JSON) {
  return take_text([&](char** text, pyc_error** e) {
    return pyc_model_report(model.get(), graph, facts, format, text, e);
  });
}

Graph two_products() {
  return Graph::parse(
      "graph @two(%x: f32[4,4]) -> (%y) {\n"
      "  %a = matmul(%x, %x)\n"
      "  %b = tanh(%a)\n"
      "  %y = matmul(%b, %x)\n"
      "}\n");
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Report, HasTheGraphsTheGroupsAndTheTimes) {
  const Graph graph = small_graph();
  const Model model(graph, {});
  const size_t steps = pyc_model_step_count(model.get());
  std::vector<int64_t> times(2 * steps, 700);
  auto facts = sized<pyc_report_facts>();
  facts.title = "small.ir";
  facts.step_ns = times.data();
  facts.step_ns_count = times.size();
  facts.flops_per_ns = 2.5;
  facts.bytes_per_ns = 1.5;
  const std::string json = report_of(model, graph.get(), &facts);
  EXPECT_TRUE(holds(json, R"("schema":"pyc.report.v1","title":"small.ir")")) << json;
  EXPECT_TRUE(holds(json, R"("roofs":{"gflops":2.5,"gbytes_per_second":1.5})")) << json;
  EXPECT_TRUE(holds(json, "\"runs\":[[700")) << json;
  EXPECT_TRUE(holds(json, R"("compile_budget_ms":null,"latency_target_us":null,"predicted_ns":)"));
  EXPECT_TRUE(holds(json, "\"graphs\":{\"before\":{")) << json;
  const std::string html = report_of(model, graph.get(), &facts, PYC_REPORT_HTML);
  EXPECT_TRUE(html.starts_with("<!doctype html>"));
  EXPECT_TRUE(holds(html, json));  // nothing in it had to be escaped
}

TEST(Report, SaysWhatIsNotKnown) {
  const Model model(small_graph(), {});
  const std::string json = report_of(model, nullptr, nullptr);
  EXPECT_TRUE(holds(json, "\"graphs\":null")) << json;
  EXPECT_TRUE(holds(json, "\"roofs\":null")) << json;
  EXPECT_TRUE(holds(json, "\"runs\":[]")) << json;
  EXPECT_FALSE(holds(json, "\"places\"")) << json;
}

TEST(Report, RefusesWhatDoesNotFit) {
  const Graph graph = small_graph();
  const Model model(graph, {});
  char* text = nullptr;
  EXPECT_EQ(pyc_model_report(nullptr, nullptr, nullptr, PYC_REPORT_JSON, &text, nullptr),
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_model_report(model.get(), nullptr, nullptr, PYC_REPORT_JSON, nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_model_report(model.get(), nullptr, nullptr, 2, &text, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  auto facts = sized<pyc_report_facts>();
  facts.step_ns_count = 1;
  EXPECT_EQ(pyc_model_report(model.get(), nullptr, &facts, PYC_REPORT_JSON, &text, nullptr),
            PYC_STATUS_NULL_POINTER);
  const Model other(two_products(), {});
  const size_t steps = pyc_model_step_count(other.get());
  ASSERT_GT(steps, 1u);
  const std::vector<int64_t> times(steps + 1, 1);
  facts.step_ns = times.data();
  facts.step_ns_count = times.size();
  EXPECT_EQ(pyc_model_report(other.get(), nullptr, &facts, PYC_REPORT_JSON, &text, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  facts.struct_size = 3;
  EXPECT_EQ(pyc_model_report(model.get(), nullptr, &facts, PYC_REPORT_JSON, &text, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(text, nullptr);
}

// The stages of another graph would be told as the model's.
TEST(Report, RefusesTheGraphOfAnotherModel) {
  const Graph other = Graph::parse("graph @small(%x: f32[2,3]) -> (%y) {\n  %y = relu(%x)\n}\n");
  const Model model(small_graph(), {});
  char* text = nullptr;
  pyc_error* error = nullptr;
  EXPECT_EQ(pyc_model_report(model.get(), other.get(), nullptr, PYC_REPORT_JSON, &text, &error),
            PYC_STATUS_INVALID_ARGUMENT);
  ASSERT_NE(error, nullptr);
  EXPECT_TRUE(holds(pyc_error_message(error), "expected the one that the model was compiled from"));
  pyc_error_destroy(error);
  EXPECT_EQ(text, nullptr);
}

}  // namespace
}  // namespace pyc::test
