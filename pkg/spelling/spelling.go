// Package spelling finds the name that a user probably meant.
package spelling

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Nearest returns the name that is most similar to the word; empty if none is similar, or if the word is one of the
// names. Case does not matter. If names are equally similar, it returns the first.
func Nearest(word string, names []string) string {
	nearest, least := "", limit(word)+1
	letters := utf8.RuneCountInString(word)
	for _, name := range names {
		if name == word {
			return ""
		}
		if n := utf8.RuneCountInString(name) - letters; n >= least || -n >= least {
			continue // so that long words take no time
		}
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			nearest, least = name, d
		}
	}
	return nearest
}

// NearestPath returns the first path that ends with the word after a slash, or after a hyphen as in the name of a
// queue, or else the nearest one.
func NearestPath(word string, paths []string) string {
	for _, path := range paths {
		if word != "" && (strings.HasSuffix(path, "/"+word) || strings.HasSuffix(path, "-"+word)) && !slices.Contains(paths, word) {
			return path
		}
	}
	return Nearest(word, paths)
}

// limit is how many letters of the word can be wrong.
func limit(word string) int {
	switch n := len([]rune(word)); {
	case n < 2:
		return 0
	case n < 6:
		return 1
	case n < 12:
		return 2
	default:
		return 3
	}
}

// distance returns the minimum number of edits that turn one word into the other. An edit inserts, deletes or replaces
// a letter, or swaps two neighbors.
func distance(from, to string) int {
	a, b := []rune(from), []rune(to)
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
