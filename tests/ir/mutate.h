#pragma once

// Random edits of a text.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "ir/random_graph.h"

namespace pyc::ir::testing {

// One edit: a byte changed, inserted or removed, two exchanged, a piece of another place or one of
// `words` copied in, or the rest cut off. The text may end up empty.
inline void mutate(Random& random, std::string& text, std::span<const std::string_view> words) {
  if (text.empty()) {
    text = words[0];
    return;
  }
  constexpr std::string_view kUseful = "()[]{},:=%@\"#->0123456789.?*_xeE \n\\nabif";
  const size_t at = random.below(text.size());
  switch (random.below(8)) {
    case 0:
      text[at] = static_cast<char>(random.bits());
      break;
    case 1:
      text[at] = kUseful[random.below(kUseful.size())];
      break;
    case 2:
      text.insert(at, 1, kUseful[random.below(kUseful.size())]);
      break;
    case 3:
      text.erase(at, 1 + random.below(8));
      break;
    case 4:
      text.insert(at, text.substr(random.below(text.size()), 1 + random.below(60)));
      break;
    case 5:
      std::swap(text[at], text[random.below(text.size())]);
      break;
    case 6:
      text.insert(at, words[random.below(words.size())]);
      break;
    default:
      text.resize(at);
  }
}

}  // namespace pyc::ir::testing
