# SPDX-License-Identifier: GPL-2.0
# bash completion of wbctl; where this knows no word, bash offers files

_wbctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=

	# bash takes contexts=2 for three words, and 8:0 as well
	[[ $cur != = ]] || cur=
	[[ $prev != = ]] || prev=${COMP_WORDS[COMP_CWORD - 2]}

	case $COMP_CWORD:${COMP_WORDS[1]}:$prev:$cur in
	1:*)
		words='contexts set apply stream --help' ;;
	2:stream:*)
		words='max get set' ;;
	*:set:contexts:*)
		words='auto 1 2 4 8' ;;
	*:set:affinity:*)
		words='fs ino rotor least-loaded' ;;
	*:set:workers:*)
		words='1 2 4 8' ;;
	[3-9]:set:::* | [3-9]:set:*::)
		;;
	[3-9]:set:*)
		[[ " ${COMP_WORDS[*]} " != *' = '* ]] || return 0
		compopt -o nospace
		words='contexts= affinity= workers=' ;;
	2:apply:*:-*)
		words='--if-pinned' ;;
	*:contexts:*:-*)
		words='--json --watch' ;;
	*:stream:*:-*)
		words='--json -r' ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o default -F _wbctl wbctl
