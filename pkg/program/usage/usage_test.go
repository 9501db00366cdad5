package usage_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/pkg/program/usage"
	"kube-queue.dev/kube-queue/test/require"
)

func TestAnErrorInACommandLineNamesTheFlagThatWasMeant(t *testing.T) {
	const see = "See 'thing --help' for usage.\n"
	for _, c := range []struct{ arg, want string }{
		{"--oversel-rate=1", "thing: unknown flag: --oversel-rate\nDid you mean --oversell-rate?\n" + see},
		{"--oversellrate", "thing: unknown flag: --oversellrate\nDid you mean --oversell-rate?\n" + see},
		{"-oversell-rate", "thing: unknown shorthand flag: 'o' in -oversell-rate\nDid you mean --oversell-rate?\n" + see},
		{"--whatever", "thing: unknown flag: --whatever\n" + see},
		{"--secre", "thing: unknown flag: --secre\n" + see},
		{"--number=x", "thing: invalid argument \"x\" for \"--number\" flag: strconv.ParseInt: parsing \"x\": invalid syntax\n" + see},
	} {
		flags := pflag.NewFlagSet("thing", pflag.ContinueOnError)
		flags.String("oversell-rate", "", "")
		flags.Int("number", 0, "")
		flags.String("secret", "", "")
		require.NoError(t, flags.MarkHidden("secret"))
		err := flags.Parse([]string{c.arg})
		var out strings.Builder
		usage.Print(&out, "thing", err, flags)
		if out.String() != c.want {
			t.Errorf("%s: it prints\n%swant\n%s", c.arg, &out, c.want)
		}
		if usage.IsUnknownFlag(err) != strings.Contains(c.want, "unknown") {
			t.Errorf("%s: is an unknown flag: %v", c.arg, usage.IsUnknownFlag(err))
		}
	}
	var out strings.Builder
	usage.Print(&out, "thing", errors.New("odd"), nil)
	if out.String() != "thing: odd\n"+see {
		t.Errorf("it prints %s", &out)
	}
}
