package cmdline

import "strings"

// Completion returns a script that completes verbs, subs, flags and files in
// bash, zsh or fish. It is static: completing starts no process.
func (a *App) Completion(shell string) (string, error) {
	var script, line, between string
	switch shell {
	case "bash":
		script, line, between = bashScript, "\t'@PATH') words='@SUBS' flags='@FLAGS' ;;\n", "|"
	case "zsh":
		script, line, between = zshScript, "\t'@PATH') names=(@SUBS) flags=(@FLAGS) ;;\n", "|"
	case "fish":
		script, line, between = fishScript, "\t\tcase '@PATH'; __@NAME_offer $argv[1] '@SUBS' '@FLAGS'\n", " "
	default:
		return "", Usage("no completion for %s", quoted(shell)).
			WithHint("%s completion bash, zsh or fish", a.Name).WithCandidates("bash", "zsh", "fish")
	}
	verbs := append(a.Verbs[:len(a.Verbs):len(a.Verbs)], builtinVerbs...)
	var cases strings.Builder
	var parents []string
	offer := func(path string, v *Verb) {
		subs, flags := visibleNames(v.Subs), flagNames(v.flags())
		if subs != "" || flags != "" {
			cases.WriteString(strings.NewReplacer("@NAME", a.Name, "@PATH", path, "@SUBS", subs, "@FLAGS", flags).Replace(line))
		}
	}
	for _, v := range verbs {
		if v.Hidden {
			continue
		}
		offer(v.Name, v)
		if len(v.Subs) > 0 {
			parents = append(parents, v.Name)
		}
		for _, sub := range v.Subs {
			if !sub.Hidden {
				offer(v.Name+" "+sub.Name, sub)
			}
		}
	}
	if len(parents) == 0 {
		parents = []string{"''"} // a case needs a pattern
	}
	return strings.NewReplacer(
		"@NAME", a.Name,
		"@VALUED", strings.Join(valued(nil, a.Flags, verbs), between),
		"@PARENTS", strings.Join(parents, between),
		"@VERBS", visibleNames(verbs),
		"@GLOBALS", strings.TrimSpace(flagNames(a.Flags)+" --json --quiet --help"),
		"@CASES", cases.String(),
	).Replace(script), nil
}

// visibleNames returns the names of verbs with a space between.
func visibleNames(verbs []*Verb) string {
	var names []string
	for _, v := range verbs {
		if !v.Hidden {
			names = append(names, v.Name)
		}
	}
	return strings.Join(names, " ")
}

// flagNames returns the long flags with a space between.
func flagNames(flags []Flag) string {
	var names []string
	for i := range flags {
		switch flags[i].Name {
		case "json", "quiet", "help", "version": // every App has them
		default:
			names = append(names, dashed(flags[i].Name))
		}
	}
	return strings.Join(names, " ")
}

// valued adds to names every flag, of the App and of its verbs, after which
// the next word is its value.
func valued(names []string, flags []Flag, verbs []*Verb) []string {
	for i := range flags {
		if flags[i].Kind == Bool {
			continue
		}
	next:
		for _, name := range append([]string{flags[i].Name}, flags[i].Aliases...) {
			for _, known := range names {
				if known == dashed(name) {
					continue next
				}
			}
			names = append(names, dashed(name))
		}
	}
	for _, v := range verbs {
		names = valued(names, v.flags(), v.Subs)
	}
	return names
}

const bashScript = `# source <(@NAME completion bash)
_@NAME() {
	local cur=${COMP_WORDS[COMP_CWORD]} path= words= flags= i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) return ;;
		=) ((i++)) ;; # bash makes three words of --flag=value
		@VALUED) [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++)); ((i++)) ;;
		-*) ;;
		*) case $path in
			'') path=${COMP_WORDS[i]} ;;
			@PARENTS) path+=" ${COMP_WORDS[i]}" ;;
			esac ;;
		esac
	done
	((i > COMP_CWORD)) && return
	case $path in
	'' | help) words='@VERBS' ;;
@CASES	esac
	case $cur in
	-*) COMPREPLY=($(compgen -W "$flags @GLOBALS" -- "$cur")) ;;
	*) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
	esac
}
complete -o default -F _@NAME @NAME
`

const zshScript = `#compdef @NAME
# source <(@NAME completion zsh), or put it on fpath as _@NAME
_@NAME() {
	local verb= i
	local -a names flags
	for ((i = 2; i < CURRENT; i++)); do
		case $words[i] in
		--) _files; return ;;
		@VALUED) ((i++)) ;;
		-*) ;;
		*) case $verb in
			'') verb=$words[i] ;;
			@PARENTS) verb+=" $words[i]" ;;
			esac ;;
		esac
	done
	((i > CURRENT)) && { _files; return }
	case $verb in
	'' | help) names=(@VERBS) ;;
@CASES	esac
	if [[ $PREFIX == -* ]]; then
		compadd -- $flags @GLOBALS
	elif (($#names)); then
		compadd -- $names
	else
		_files
	fi
}
if [[ $funcstack[1] == _@NAME ]]; then
	_@NAME "$@"
else
	compdef _@NAME @NAME
fi
`

const fishScript = `# @NAME completion fish > ~/.config/fish/completions/@NAME.fish
function __@NAME_path
	set -l path
	set -l skip no
	set -l words (commandline -opc)
	set -e words[1]
	for word in $words
		if test $skip = yes
			set skip no
			continue
		end
		switch $word
			case @VALUED
				set skip yes
			case '-*'
			case '*'
				if test -z "$path"
					set path $word
				else if contains -- "$path" @PARENTS
					set path "$path $word"
				end
		end
	end
	test $skip = yes; and set path -
	echo $path
end
function __@NAME_offer
	if string match -q -- '-*' $argv[1]
		string split -n ' ' -- "$argv[3] @GLOBALS"
	else
		string split -n ' ' -- "$argv[2]"
	end
end
function __@NAME_words
	switch (__@NAME_path)
		case -
		case '' help; __@NAME_offer $argv[1] '@VERBS' ''
@CASES		case '*'; __@NAME_offer $argv[1] '' ''
	end
end
complete -c @NAME -a '(__@NAME_words (commandline -ct))'
complete -c @NAME -n 'test -z (__@NAME_path)' -f
`
