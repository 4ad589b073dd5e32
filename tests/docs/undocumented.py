# SPDX-License-Identifier: MIT
"""Declarations of the internal rooms that have no docstring: types, functions, constants and aliases of a namespace,
which clang-format writes from column 0 on. What `namespace detail` has is left out."""

import re

import reference

ROOMS = ("core", "families", "gpu", "ir", "kernels", "plan", "reference", "runtime")  # of include/intaglio
SENTENCES = ("families", "gpu", "kernels", "plan")  # rooms whose docstrings all begin with a sentence
NAMESPACE = re.compile(r"(\}  // )?(?:inline )?namespace (?:\w+::)*detail(?: \{|$)")
TYPE = re.compile(r"(?:struct|class|union|enum(?: class)?|concept) (\w+)(?= [{:=]| final| : |$)|using (\w+) =")
WORDS = r"(?:(?:inline|constexpr|consteval|static|extern|INTAGLIO_DEFINITION|\[\[[\w:]+\]\]) )*"
FUNCTION = re.compile(WORDS + r"(?:[\w:]+(?:<.*?>)?(?:::\w+)*[&*]* [&*]*)+?(operator\W+|\w+)\(")
CONSTANT = re.compile(r"(?:inline |static )*constexpr (?:const )?[\w:<>, *&]+? (\w+)(?:\[\w*\])?(?: =|\{)")
# A definition behind INTAGLIO_IMPLEMENTATION is documented at its declaration, a specialisation at its template.
OTHER = re.compile(
    r"(?:\[\[[\w:]+\]\] )?INTAGLIO_DEFINITION |template <>|using namespace |static_assert|extern template|[A-Z_]+\("
    r"|.*operator=="
)


def declarations(text):
    """(line number, line, whether a docstring is in front of it or behind it) of what begins at column 0."""
    documented, in_head, hidden, continued = False, False, False, False
    for number, line in enumerate(text.split("\n"), 1):
        detail = NAMESPACE.match(line)
        hidden = not detail[1] if detail else hidden
        if in_head or re.match(r"template <(?!>)| *requires ", line):
            in_head = in_head and not line.endswith(">") or bool(re.match(r"template <.*,$", line))
            continue
        if not hidden and not continued and re.match(r"[\w\[]", line) and not OTHER.match(line):
            yield number, line, documented or "///<" in line
        directive = line.startswith("#") or (continued and documented)  # a docstring in front of a macro is its use's
        documented = line.startswith("///") or (documented and directive)
        continued = line.endswith("\\")


def undocumented(text):
    """(line number, name) of the declarations without a docstring."""
    for number, line, documented in declarations(text):
        found = TYPE.match(line) or FUNCTION.match(line) or CONSTANT.match(line)
        if found and not documented:
            yield number, next(name for name in found.groups() if name)


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
  requires std::integral<T>
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
"""


def planted_problems():
    """undocumented finds each planted declaration without a docstring and nothing else."""
    found = [name for _, name in undocumented(PLANTED)]
    wanted = re.findall(r"\bplanted_\w+", PLANTED)
    if found != wanted:
        yield "tests/docs/undocumented.py", 1, f"expected complaints of {wanted}, found {found}"


def problems(root):
    """(header, line, problem) for each declaration without a docstring, and for docstrings without a first sentence."""
    for room in ROOMS:
        paths = sorted((root / "include/intaglio" / room).rglob("*.hpp"))
        headers = [path for path in paths if "spirv" not in path.parts]
        if not headers:
            yield f"include/intaglio/{room}", 1, "expected headers, found none"
        for path in headers:
            name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            for number, missing in undocumented(text):
                yield name, number, f"{missing}: expected a docstring, found none"
            if room in SENTENCES:
                yield from reference.sentence_problems(name, text)
