namespace pyc::ir {
namespace {

constexpr double kLimit = 2.0;
struct Entry {
  double kOwn = 0.0;
};
template <class T>
T find(T key, int start) {
  int shared = start;  // a local one neither
  return key + shared;
}
using Other = Entry;

}  // namespace

// Not in an unnamed namespace.
int other(int key) { return find(key, 0); }

}  // namespace pyc::ir
