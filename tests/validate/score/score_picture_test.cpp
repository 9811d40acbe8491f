#include "validate/score/score_picture.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

ScorePicture sample() {
    return {"Step times",
            "constants of a <site> & more",
            {{"GPT 3.6B", {{"a-001", 4.0, 4.2}, {"a-002", 9.8, 4.9}}}, {"GPT 175B", {{"a-003", 55.0, 57.5}}}}};
}

std::size_t count(const std::string& text, const std::string& word) {
    std::size_t n = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
        ++n;
    return n;
}

TEST(ScorePicture, ADotAPointWithItsErrorAndASeriesInTheLegend) {
    const std::string svg = picture_svg(sample());
    EXPECT_EQ(count(svg, "<circle"), 5u);  // three points, two of the legend
    EXPECT_NE(svg.find("<title>a-002: measured 9.8 s, predicted 4.9 s, -50.0 %</title>"), std::string::npos) << svg;
    EXPECT_NE(svg.find("GPT 175B: 1, median 4.5 %"), std::string::npos);
    for (const char* tick : {">2 s<", ">5 s<", ">10 s<", ">20 s<", ">50 s<", ">100 s<"})
        EXPECT_EQ(count(svg, tick), 2u) << tick;
    EXPECT_EQ(count(svg, "stroke-dasharray"), 2u);  // 10 % off, either way
}

TEST(ScorePicture, APageHasThePictureATableAndNothingFromOutside) {
    const std::string page = picture_html(sample());
    EXPECT_EQ(page.rfind("<!doctype html>", 0), 0u);
    EXPECT_EQ(count(page, "<svg"), 1u);
    EXPECT_NE(page.find("constants of a &lt;site&gt; &amp; more"), std::string::npos);
    EXPECT_NE(page.find("<td>GPT 3.6B</td><td>2</td><td>27.5 %</td>"), std::string::npos) << page;
    EXPECT_EQ(count(page, "<script"), 0u);
    EXPECT_EQ(count(page, "href"), 0u);
}

TEST(ScorePicture, OtherNamesAndNoPointsAreRefused) {
    const std::string folder = std::filesystem::temp_directory_path() / std::to_string(::getpid());
    EXPECT_THROW(check_picture(folder + ".png"), IngestError);
    EXPECT_THROW(write_picture({"t", "s", {}}, folder + ".svg"), IngestError);
    EXPECT_ANY_THROW(check_picture("/no/such/folder/x.html"));
    write_picture(sample(), folder + ".html");
    EXPECT_GT(std::filesystem::file_size(folder + ".html"), 1500u);
    std::filesystem::remove(folder + ".html");
    std::filesystem::remove(folder + ".svg");
}

}  // namespace
}  // namespace fabricast
