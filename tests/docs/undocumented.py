# SPDX-License-Identifier: MIT
"""Names of include/intaglio that have no docstring: types, functions, constants and aliases of a namespace, which
clang-format writes from column 0 on. What `namespace detail` has is left out. One docstring suffices for overloads, for
a declaration and its definition, for a group (/// @{ to /// @}), and for the definitions of one name for POSIX and for
Windows."""

import re

import reference

NAMED_AS_PUBLISHED = "models"  # room whose docstrings begin with the names under which models are published
NAMESPACE = re.compile(r"(\}  // )?(?:inline )?namespace (?:\w+::)*detail(?: \{|$)")
TYPE = re.compile(
    r"(?:struct|class|union|enum(?: class)?|concept) (\w+)(?= [{:=]| final| : |$)|using (\w+) ="
    r"|typedef [\w:]+ (\w+) __attribute__"
)
WORDS = r"(?:(?:inline|constexpr|consteval|static|extern|INTAGLIO_DEFINITION|\[\[[\w:]+\]\]) )*"
FUNCTION = re.compile(WORDS + r"(?:[\w:]+(?:<.*?>)?(?:::\w+)*[&*]* [&*]*)+?(operator\W+|\w+)\(")
CONSTANT = re.compile(r"(?:inline |static )*constexpr (?:const )?[\w:<>, *&]+? (\w+)(?:\[\w*\])?(?: =|\{)")
# A definition behind INTAGLIO_IMPLEMENTATION is documented at its declaration, a specialisation at its template. A
# message for the compiler's output (text<>) explains itself.
OTHER = re.compile(
    r"(?:\[\[[\w:]+\]\] )?INTAGLIO_DEFINITION |template <>|using namespace |static_assert|extern template|[A-Z_]+\("
    r"|.*operator==|inline constexpr text<> "
)


def documented_behind(lines, at):
    """Whether a declaration has a docstring behind it: in a line up to its first brace, or behind its last brace."""
    depth = 0
    for number, line in enumerate(lines[at:]):
        code = re.sub(r'"(?:\\.|[^"\\])*"|\'.\'|//.*', "", line)
        in_head = depth == 0
        depth += code.count("{") - code.count("}")
        ends = depth == 0 and code.rstrip().endswith((";", "}"))
        if (in_head or ends) and "///<" in line:
            return True
        if ends or (number and not line):
            return False
    return False


def declarations(text):
    """(line number, line, whether a docstring is in front of it or behind it) of what begins at column 0."""
    documented, in_head, hidden, continued, group = False, False, False, False, False
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        detail = NAMESPACE.match(line)
        hidden = not detail[1] if detail else hidden
        group = line != "/// @}" and (group or line == "/// @{")
        if in_head or re.match(r"template <(?!>)| *requires\b", line):
            in_head = in_head and not line.endswith(">") or bool(re.match(r"template <.*,$", line))
            continue
        if not hidden and not continued and re.match(r"[\w\[]", line) and not OTHER.match(line):
            yield number, line, documented or group or documented_behind(lines, number - 1)
        directive = line.startswith("#") or (continued and documented)  # a docstring in front of a macro is its use's
        documented = line not in ("/// @{", "/// @}") and line.startswith("///") or (documented and directive)
        continued = line.endswith("\\")


def names(text):
    """(line number, name, whether it has a docstring) of the declarations."""
    for number, line, documented in declarations(text):
        found = TYPE.match(line) or FUNCTION.match(line) or CONSTANT.match(line)
        if found:
            yield number, next(name for name in found.groups() if name), documented


def undocumented(text, twin=""):
    """(line number, name) of the declarations without a docstring, in this file and in the one for the other system."""
    known = {name for each in (text, twin) for _, name, documented in names(each) if documented}
    for number, name, _ in names(text):
        if name not in known:
            yield number, name


PLANTED = """
/// A row.
struct row {
  int undocumented_members_are_no_fault;
};
struct planted_type {
};
/// A list.
template <class Long, class List,
          class Of>
struct list {};
template <class T>
  requires(sizeof(T) == 4)
constexpr int planted_function(T) {
  return 0;
}
inline constexpr int documented = 1;  ///< a constant
inline constexpr int planted_constant = 2;
/// Kinds.
#define EACH(name) name,
enum class kind { EACH(a) };
#undef EACH
enum class planted_kind { a };
namespace detail {
struct hidden {};
}  // namespace detail
using planted_alias =
    int;
typedef float planted_vector __attribute__((vector_size(16)));
/// @{
/// Sums.
int sum(int);
int sum_of_two(int, int);
/// @}
int planted_behind_group();
int sum(float);
inline int two_lines(int,
                     int) {  ///< a sum
  return 0;
}
inline int one_line() {
  return 0;
}  ///< a number
inline int planted_body() {
  int member;  ///< not a docstring of the function
}
int of_other_system();
"""


def planted_problems():
    """undocumented finds each planted declaration without a docstring and nothing else."""
    found = [name for _, name in undocumented(PLANTED, "/// Documented there.\nint of_other_system();")]
    wanted = re.findall(r"\bplanted_\w+", PLANTED)
    if found != wanted:
        yield "tests/docs/undocumented.py", 1, f"expected complaints of {wanted}, found {found}"


def twin_of(path):
    """The text of the header that defines the same names for the other system, if there is one."""
    for own, other in (("posix_", "windows_"), ("windows_", "posix_")):
        twin = path.with_name(path.name.replace(own, other))
        if path.name.startswith(own) and twin.is_file():
            return twin.read_text(encoding="utf-8")
    return ""


def problems(root):
    """(header, line, problem) for each name without a docstring, and for docstrings without a first sentence."""
    paths = sorted((root / "include/intaglio").rglob("*.hpp"))
    headers = [path for path in paths if "spirv" not in path.parts]
    if not headers:
        yield "include/intaglio", 1, "expected headers, found none"
    for path in headers:
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        for number, missing in undocumented(text, twin_of(path)):
            yield name, number, f"{missing}: expected a docstring, found none"
        if path.relative_to(root / "include/intaglio").parts[0] != NAMED_AS_PUBLISHED:
            yield from reference.sentence_problems(name, text)
