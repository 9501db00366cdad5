package quota

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestQueueName(t *testing.T) {
	for _, c := range []struct{ why, path, want string }{
		{"a slash becomes a dash without a hash", "root/team-a", "root-team-a"},
		{"a dot may be in a name", "root/root.default", "root-root.default"},
		{"upper case becomes lower case and a hash", "root/root.defaultQuotaGroup", "root-root.defaultquotagroup-*"},
		{"other characters become dashes and a hash", "root/team_a b", "root-team-a-b-*"},
		{"what may not be at the start is cut", "-root/a", "root-a-*"},
		{"what may not be at the end is cut", "root/a.", "root-a-*"},
		{"a dot next to a dash is replaced", "root/.hidden", "root--hidden-*"},
		{"two dots are replaced", "a..b", "a--b-*"},
		{"dashes in a row are kept", "a/-b", "a--b"},
		{"a name of other scripts has a hash alone", "根", "queue-*"},
		{"an empty path has a name", "", "queue-*"},
		{"a name at the limit stays", strings.Repeat("a", 253), strings.Repeat("a", 253)},
		{"a name above the limit is cut", strings.Repeat("a", 254), strings.Repeat("a", 247) + "-*"},
		{"no dash or dot precedes the hash", strings.Repeat("a", 246) + "/" + strings.Repeat("b", 10), strings.Repeat("a", 246) + "-*"},
	} {
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(c.want), `\*`, "[a-z]{5}") + "$"
		if got := QueueName(c.path); !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("%s: QueueName(%q) = %q, want %q", c.why, c.path, got, c.want)
		}
	}
}

func TestPathsThatComeToOneNameAreKeptApart(t *testing.T) {
	names := QueueNames([]string{"a/b-c", "a-b/c", "a/b/c", "A/b-c"})
	if names[0] != "a-b-c" {
		t.Errorf("the first is %q, want it unchanged", names[0])
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] || !strings.HasPrefix(name, "a-b-c") {
			t.Errorf("names %q", names)
		}
		seen[name] = true
	}
	taken := names[1]
	if again := QueueNames([]string{taken, "a/b-c", "a-b/c"}); again[0] != taken || again[2] == taken {
		t.Errorf("a name that a path of its own has is given twice: %q", again)
	}
}

func TestQueueNamesAreValidAndDiffer(t *testing.T) {
	path := rapid.OneOf(
		rapid.StringMatching(`[aA.\-/_]{0,8}`), rapid.String(), rapid.StringMatching(`[a-z./-]{240,300}`),
		rapid.StringMatching(`[aB]{245,260}`))
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOfNDistinct(path, 1, 30, rapid.ID[string]).Draw(t, "paths")
		seen := map[string]bool{}
		for i, name := range QueueNames(paths) {
			if faults := validation.IsDNS1123Subdomain(name); faults != nil || seen[name] {
				t.Fatalf("%q of %q: taken %v, %v", name, paths[i], seen[name], faults)
			}
			seen[name] = true
		}
	})
}
