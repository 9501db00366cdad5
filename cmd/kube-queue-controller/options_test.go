package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/pkg/queue"
)

func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestPolicyByEnvironment(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		want queue.Policy
	}{
		{"nothing set means RoundRobin", nil, queue.RoundRobin},
		{"StrictPriority means Block", []string{"StrictPriority", "true"}, queue.Block},
		{"StrictConsistency means Priority", []string{"StrictConsistency", "true"}, queue.Priority},
		{"both mean Block", []string{"StrictPriority", "true", "StrictConsistency", "true"}, queue.Block},
		{"false and empty are as good as unset", []string{"StrictPriority", "false", "StrictConsistency", ""}, queue.RoundRobin},
		{"case does not matter", []string{"StrictPriority", "True"}, queue.Block},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &options{oversellRate: "1", workers: 1}
			if err := o.complete(environment(c.env...)); err != nil || o.policy != c.want {
				t.Fatalf("policy %q, error %v; want %q", o.policy, err, c.want)
			}
		})
	}
}

func TestSettingsThatAreNotKnownAreRefusedWithWhatIs(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  options
		env   []string
		words []string
	}{
		{"an unknown quota backend", options{oversellRate: "1", workers: 1}, []string{"QueueGroupPlugin", "elasticquotav2"}, []string{"QueueGroupPlugin", "elasticquotav2", "elasticquota, resourcequota"}},
		{"an unknown boolean", options{oversellRate: "1", workers: 1}, []string{"StrictPriority", "yes please"}, []string{"StrictPriority", "yes please", "true, false"}},
		{"the other unknown boolean", options{oversellRate: "1", workers: 1}, []string{"StrictConsistency", "2"}, []string{"StrictConsistency"}},
		{"a rate that is no decimal", options{oversellRate: "a lot", workers: 1}, nil, []string{"--oversell-rate", "a lot"}},
		{"a rate of zero", options{oversellRate: "0", workers: 1}, nil, []string{"--oversell-rate"}},
		{"a negative rate", options{oversellRate: "-1", workers: 1}, nil, []string{"--oversell-rate"}},
		{"no worker", options{oversellRate: "1"}, nil, []string{"--workers"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.opts.complete(environment(c.env...))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
		})
	}
}

func TestBorrowingIsPausedOnlyWhereThatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{{nil, false}, {[]string{"--pause-borrowing"}, true}, {[]string{"--pause-borrowing=false"}, false}} {
		o, flags := &options{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(flags)
		if err := flags.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if err := o.complete(environment()); err != nil || o.pauseBorrowing != c.want {
			t.Errorf("%v: paused %t, error %v", c.args, o.pauseBorrowing, err)
		}
		if shown := fmt.Sprintln(o.inForce()...); !strings.Contains(shown, fmt.Sprint("pauseBorrowing ", c.want)) {
			t.Errorf("%v: in force is %s", c.args, shown)
		}
	}
}

func TestTheBackendIsReadInAnyCase(t *testing.T) {
	for value, want := range map[string]string{
		"": "elasticquota", "elasticquota": "elasticquota", "ElasticQuota": "elasticquota", "ELASTICQUOTA": "elasticquota",
		"resourcequota": "resourcequota", "resourceQuota": "resourcequota", "ResourceQuota": "resourcequota",
	} {
		o := &options{oversellRate: "1.2", workers: 1}
		if err := o.complete(environment("QueueGroupPlugin", value)); err != nil || o.backend.name != want {
			t.Errorf("%q: backend %q, error %v", value, o.backend.name, err)
		}
	}
}

func TestAtTheStartItIsSaidWhichFlagsMeanNothingToTheBackend(t *testing.T) {
	for _, c := range []struct{ backend, args, want, not string }{
		{"elasticquota", "--oversell-rate=1.2", "oversellRate 1.2", "withoutEffect"},
		{"resourcequota", "", "quotaBackend resourcequota", "withoutEffect"},
		{"resourcequota", "--workers=3", "quotaBackend resourcequota", "oversell"},
		{"resourcequota", "--oversell-rate=1.2", "withoutEffect --oversell-rate", "pause"},
		{"resourcequota", "--pause-borrowing --oversell-rate=1.2", "withoutEffect --oversell-rate --pause-borrowing", "oversellRate"},
	} {
		o, flags := &options{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(flags)
		if err := flags.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		if err := o.complete(environment("QueueGroupPlugin", c.backend)); err != nil {
			t.Fatal(err)
		}
		if shown := fmt.Sprintln(o.inForce()...); !strings.Contains(shown, c.want) || strings.Contains(shown, c.not) {
			t.Errorf("%s %s: in force is %s", c.backend, c.args, shown)
		}
	}
}
