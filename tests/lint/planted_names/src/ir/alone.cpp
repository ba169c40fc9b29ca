namespace pyc::ir {
namespace {

constexpr int kLimit = 1;  // this file is never joined

}  // namespace
}  // namespace pyc::ir
