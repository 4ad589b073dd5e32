// SPDX-License-Identifier: MIT
#include "shell_words.hpp"

#include <CLI/CLI.hpp>

#include <functional>

namespace intaglio::tool {
namespace {

struct option_words {
  std::vector<std::string> names;   ///< with their dashes
  std::vector<std::string> values;  ///< where there are only these
  std::string description, value;   ///< value: what it is called; empty: it takes none
};
struct command_words {
  std::string name, description, footer;  ///< name: "walk trace"; empty: the program
  std::vector<option_words> options, arguments;
};

/// "{a,b}" of the name of a type, which CLI11 makes of a set.
std::vector<std::string> values_of(const std::string& type) {
  std::vector<std::string> out;
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return out;
  for (std::size_t at = begin + 1; at < end;) {
    const std::size_t comma = std::min(type.find(',', at), end);
    out.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

option_words words_of(const CLI::Option& of) {
  option_words out;
  for (const std::string& each : of.get_lnames()) out.names.push_back("--" + each);
  for (const std::string& each : of.get_snames()) out.names.push_back("-" + each);
  out.description = of.get_description();
  const std::string type = of.get_type_name();
  out.values = values_of(type);
  if (of.get_expected_max() != 0) out.value = type.substr(0, type.find(':'));
  if (of.get_positional()) out.value = of.get_name(true);
  return out;
}

std::vector<command_words> commands_of(const CLI::App& program) {
  std::vector<command_words> out;
  const std::function<void(const CLI::App&, const std::string&)> add = [&](const CLI::App& of,
                                                                           const std::string& name) {
    command_words next{name, of.get_description(), of.get_footer(), {}, {}};
    for (const CLI::Option* each : of.get_options())
      (each->get_positional() ? next.arguments : next.options).push_back(words_of(*each));
    out.push_back(std::move(next));
    for (const CLI::App* each : of.get_subcommands([](const CLI::App*) { return true; }))
      add(*each, (name.empty() ? "" : name + ' ') + each->get_name());
  };
  add(program, {});
  return out;
}

std::string joined(const std::vector<std::string>& list, const char* between) {
  std::string out;
  for (const std::string& each : list) out += (out.empty() ? "" : between) + each;
  return out;
}
std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}
/// For shells: between single quotes, without line ends.
std::string shell_quoted(const std::string& text) {
  return '\'' + replaced(replaced(text, "\n", " "), "'", "'\\''") + '\'';
}

/// The commands right under one.
std::vector<const command_words*> under(const std::vector<command_words>& all, const std::string& name) {
  std::vector<const command_words*> out;
  for (const command_words& each : all) {
    const std::size_t blank = each.name.rfind(' ');
    const std::string parent = blank == std::string::npos ? std::string() : each.name.substr(0, blank);
    if (!each.name.empty() && parent == name) out.push_back(&each);
  }
  return out;
}
std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

std::string bash_script(const std::vector<command_words>& all) {
  std::vector<std::string> known;
  std::string options, values;
  for (const command_words& each : all) {
    if (!each.name.empty()) known.push_back('"' + each.name + '"');
    std::vector<std::string> names, words;
    for (const option_words& option : each.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.values.empty()) continue;
      std::vector<std::string> keys;
      for (const std::string& name : option.names) keys.push_back('"' + each.name + ' ' + name + '"');
      values += "    " + joined(keys, "|") + ") values=" + shell_quoted(joined(option.values, " ")) + " ;;\n";
    }
    for (const command_words* below : under(all, each.name)) words.push_back(last_word(below->name));
    for (const option_words& argument : each.arguments)
      words.insert(words.end(), argument.values.begin(), argument.values.end());
    options += "    \"" + each.name + "\") options=" + shell_quoted(joined(names, " ")) +
               " words=" + shell_quoted(joined(words, " ")) + " ;;\n";
  }
  return "# bash completion of intaglio, made by `intaglio completion bash`\n"
         "_intaglio() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command='' word options='' "
         "words='' values=''\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case \"${command:+$command }$word\" in\n      " +
         joined(known, "|") +
         ") command=\"${command:+$command }$word\" ;;\n    esac\n  done\n"
         "  case \"$command\" in\n" +
         options + "  esac\n  case \"$command $before\" in\n" + values +
         "  esac\n"
         "  if [[ -n $values ]]; then COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
         "  elif [[ $current == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
         "  else COMPREPLY=($(compgen -W \"$words\" -- \"$current\") $(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _intaglio intaglio\n";
}

std::string zsh_script(const std::vector<command_words>& all) {
  const auto in_brackets = [](const std::string& text) {
    return replaced(replaced(replaced(text, "[", "("), "]", ")"), ":", " -");
  };
  std::string out =
      "#compdef intaglio\n# zsh completion of intaglio, made by `intaglio completion zsh`\n_intaglio() {\n"
      "  local command='' word at=1\n  local -a known=(";
  for (const command_words& each : all)
    if (!each.name.empty()) out += ' ' + shell_quoted(each.name);
  out +=
      " )\n  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
      "    if (( ${known[(Ie)${command:+$command }$word]} )); then command=\"${command:+$command }$word\"; fi\n"
      "  done\n  local -a all\n  case $command in\n";
  for (const command_words& each : all) {
    out += "    " + shell_quoted(each.name) + ")\n      _arguments -S";
    for (const option_words& option : each.options)
      for (const std::string& name : option.names) {
        std::string spec = name + '[' + in_brackets(option.description) + ']';
        if (!option.values.empty()) spec += ':' + option.value + ":(" + joined(option.values, " ") + ')';
        else if (!option.value.empty()) spec += ':' + option.value + ":_files";
        out += " \\\n        " + shell_quoted(spec);
      }
    const auto below = under(all, each.name);
    if (!below.empty()) {
      std::string list;
      for (const command_words* one : below)
        list += (list.empty() ? "" : " ") + last_word(one->name) +
                "\\:" + replaced(replaced(shell_quoted(in_brackets(one->description)), "'", "\""), "\n", " ");
      out += " \\\n        " + shell_quoted("*:command:((" + list + "))");
    } else {
      std::vector<std::string> values;
      for (const option_words& argument : each.arguments)
        values.insert(values.end(), argument.values.begin(), argument.values.end());
      out += " \\\n        " +
             shell_quoted(values.empty() ? "*:file:_files" : "*:word:{ compadd " + joined(values, " ") + "; _files }");
    }
    out += " ;;\n";
  }
  return out + "  esac\n}\n_intaglio \"$@\"\n";
}

std::string fish_script(const std::vector<command_words>& all) {
  std::string out = "# fish completion of intaglio, made by `intaglio completion fish`\n";
  for (const command_words& each : all) {
    const auto below = under(all, each.name);
    std::string seen = "__fish_use_subcommand";
    if (!each.name.empty()) {
      seen.clear();
      for (std::size_t at = 0; at != std::string::npos;) {
        const std::size_t blank = each.name.find(' ', at);
        seen += (seen.empty() ? "" : "; and ") + std::string("__fish_seen_subcommand_from ") +
                each.name.substr(at, blank == std::string::npos ? blank : blank - at);
        at = blank == std::string::npos ? blank : blank + 1;
      }
      // Words that are commands here and under another one too.
      if (each.name.find(' ') == std::string::npos)
        for (const command_words& other : all)
          if (other.name.size() > each.name.size() && other.name.ends_with(' ' + each.name))
            seen += "; and not __fish_seen_subcommand_from " + other.name.substr(0, other.name.find(' '));
    }
    for (const command_words* one : below)
      out += "complete -c intaglio -n " + shell_quoted(seen) + " -a " + last_word(one->name) + " -d " +
             shell_quoted(one->description) + '\n';
    for (const option_words& option : each.options) {
      out += "complete -c intaglio -n " + shell_quoted(seen);
      for (const std::string& name : option.names)
        out += name.starts_with("--") ? " -l " + name.substr(2)
               : name.size() == 2     ? " -s " + name.substr(1)
                                      : " -o " + name.substr(1);
      if (!option.values.empty()) out += " -x -a " + shell_quoted(joined(option.values, " "));
      else if (!option.value.empty()) out += " -r";
      out += " -d " + shell_quoted(option.description) + '\n';
    }
    for (const option_words& argument : each.arguments)
      if (!argument.values.empty())
        out += "complete -c intaglio -n " + shell_quoted(seen) + " -a " + shell_quoted(joined(argument.values, " ")) +
               '\n';
  }
  return out;
}

/// Text as roff takes it: no line begins a request, no sign is one of its own.
std::string roff(const std::string& text) {
  std::string out = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  out = replaced(out, "\n.", "\n\\&.");
  out = replaced(out, "\n'", "\n\\&'");
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string man_page(const command_words& of, const std::vector<const command_words*>& below,
                     const std::string& version) {
  const std::string name = of.name.empty() ? "intaglio" : "intaglio-" + replaced(of.name, " ", "-");
  std::string synopsis = of.name.empty() ? "intaglio" : "intaglio " + of.name, out;
  if (!below.empty()) synopsis += " COMMAND";
  synopsis += " [OPTION]...";
  for (const option_words& each : of.arguments) synopsis += ' ' + each.value;
  out = ".TH " + name + " 1 \"\" \"" + version + "\" \"User Commands\"\n.SH NAME\n" +
        roff(name + " - " + of.description) + "\n.SH SYNOPSIS\n.B " + roff(synopsis) + '\n';
  const auto list = [&](const char* head, const std::vector<option_words>& all) {
    if (all.empty()) return;
    out += std::string(".SH ") + head + '\n';
    for (const option_words& each : all) {
      out += ".TP\n.B " + roff(each.names.empty() ? each.value : joined(each.names, ", ")) +
             (each.names.empty() || each.value.empty() ? "" : " \\fI" + roff(each.value) + "\\fR") + '\n' +
             roff(replaced(each.description, "\n", " ")) +
             (each.values.empty() ? "" : roff(" (" + joined(each.values, ", ") + ")")) + '\n';
    }
  };
  if (!below.empty()) {
    out += ".SH COMMANDS\n";
    for (const command_words* each : below)
      out += ".TP\n.B " + roff(last_word(each->name)) + '\n' + roff(each->description) + ": " +
             roff("intaglio-" + replaced(each->name, " ", "-")) + "(1)\n";
  }
  list("ARGUMENTS", of.arguments);
  list("OPTIONS", of.options);
  if (!of.footer.empty()) out += ".SH NOTES\n.nf\n" + roff(of.footer) + "\n.fi\n";
  return out;
}

}  // namespace

std::string completion_script(const CLI::App& program, std::string_view shell) {
  const std::vector<command_words> all = commands_of(program);
  return shell == "bash" ? bash_script(all) : shell == "zsh" ? zsh_script(all) : fish_script(all);
}

std::vector<std::pair<std::string, std::string>> man_pages(const CLI::App& program, const std::string& version) {
  const std::vector<command_words> all = commands_of(program);
  std::vector<std::pair<std::string, std::string>> out;
  for (const command_words& each : all)
    out.emplace_back((each.name.empty() ? "intaglio" : "intaglio-" + replaced(each.name, " ", "-")) + ".1",
                     man_page(each, under(all, each.name), version));
  return out;
}

}  // namespace intaglio::tool
