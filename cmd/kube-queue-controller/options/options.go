// Package options has the settings of kube-queue-controller.
package options

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Name of the program.
const Name = "kube-queue-controller"

// InvariantAudit is the proof at run time, each few minutes, that used quota is the
// sum of what was charged.
const InvariantAudit featuregate.Feature = "InvariantAudit"

// Flags that others than their own setting look at.
const (
	flagOversell       = "oversell-rate"
	flagPauseBorrowing = "pause-borrowing"
)

// Options of kube-queue-controller.
type Options struct {
	PauseBorrowing  bool
	Workers         int
	CheckInvariants bool
	Backoff         queue.Backoff

	// What the settings below come to.
	Oversell resources.Rate
	Policy   queue.Policy
	backend  quotaBackend

	oversellRate, policyName, backendName string
	set                                   *settings.Set
}

// New has the defaults.
func New() *Options {
	return &Options{
		Workers: 32, Backoff: queue.DefaultBackoff(), Policy: queue.RoundRobin, backend: backends()[0],
		oversellRate: "1.0", policyName: string(queue.RoundRobin), backendName: backends()[0].name,
	}
}

// Program with these options; its environment and what it runs are left to main.
func (o *Options) Program() program.Program {
	return program.Program{
		Name: Name, Kind: "KubeQueueControllerConfiguration",
		Settings: o.declare, Validate: o.validate, InForce: o.inForce,
		Features: map[featuregate.Feature]featuregate.FeatureSpec{
			InvariantAudit: {Default: true, PreRelease: featuregate.Beta},
		},
	}
}

// Source of the quota backend.
func (o *Options) Source() backend.Source { return o.backend.source(o) }

func (o *Options) declare(set *settings.Set) {
	o.set = set
	set.Group("Quota", o.addQuotaFlags,
		settings.Setting{Flag: "quota-backend", Field: "quotaBackend", Env: []string{envBackend}, Check: o.checkBackend},
		settings.Setting{Flag: flagOversell, Field: "oversellRate", Form: settings.Amount, Check: o.checkOversell},
		settings.Setting{Flag: flagPauseBorrowing, Field: "pauseBorrowing"})
	set.Group("Order", o.addOrderFlags,
		settings.Setting{Flag: "policy", Field: "policy", Env: []string{envStrictPriority, envStrictConsistency}, FromEnv: policyOf, Check: o.checkPolicy},
		settings.Setting{Flag: "backoff-initial", Field: "backoff.initial", Check: func() error { return checkBackoff(o.Backoff.Initial) }},
		settings.Setting{Flag: "backoff-max", Field: "backoff.max", Check: func() error { return checkBackoff(o.Backoff.Max) }})
	set.Group("Work", o.addWorkFlags,
		settings.Setting{Flag: "workers", Field: "workers", Check: o.checkWorkers},
		settings.Setting{Flag: "check-invariants", Field: "checkInvariants"})
}

func (o *Options) addQuotaFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.backendName, "quota-backend", o.backendName,
		"Where quota is kept, in any case: "+strings.Join(backendNames(), " or ")+".")
	fs.StringVar(&o.oversellRate, flagOversell, o.oversellRate,
		`Decimal that every limit of the quota, "`+wellknown.MaxJobsResource+`" included, is multiplied with.`)
	fs.BoolVar(&o.PauseBorrowing, flagPauseBorrowing, o.PauseBorrowing,
		"While a unit waits for what its quota's min guarantees, and has no room because others have borrowed it, let nobody borrow more of that. For clusters where nothing is taken back from who has borrowed.")
}

func (o *Options) addOrderFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.policyName, "policy", o.policyName,
		"Policy of the Queues that name none: "+strings.Join(policyNames(), ", ")+".")
	fs.DurationVar(&o.Backoff.Initial, "backoff-initial", o.Backoff.Initial,
		"For how long a unit that is refused lets others go first, with policy RoundRobin. It doubles with each refusal.")
	fs.DurationVar(&o.Backoff.Max, "backoff-max", o.Backoff.Max,
		"The longest that a refused unit lets others go first.")
}

func (o *Options) addWorkFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.Workers, "workers", o.Workers, "Status writes under way at most.")
	fs.BoolVar(&o.CheckInvariants, "check-invariants", o.CheckInvariants,
		"Prove after every event that used quota is the sum of what was charged, and end when it is not. For tests: it takes time proportional to the number of units.")
}

func (o *Options) checkOversell() (err error) {
	o.Oversell, err = resources.ParseRate(o.oversellRate)
	return err
}

func (o *Options) checkWorkers() error {
	if o.Workers < 1 {
		return fmt.Errorf("%d is too few; at least 1 is needed", o.Workers)
	}
	return nil
}

// longestBackoff is far above what is of use, and far below what could not be doubled.
const longestBackoff = 24 * time.Hour

func checkBackoff(d time.Duration) error {
	if d <= 0 || d > longestBackoff {
		return fmt.Errorf("must be above 0 and at most %v, not %v", longestBackoff, d)
	}
	return nil
}

func (o *Options) validate() error {
	if o.Backoff.Initial > o.Backoff.Max {
		return errors.New("--backoff-initial (" + o.Backoff.Initial.String() + ") must not be above --backoff-max (" + o.Backoff.Max.String() + ")")
	}
	return nil
}

func (o *Options) inForce() []any {
	shown := []any{"quotaBackend", o.backend.name, "policy", o.Policy}
	if len(o.backend.idle) == 0 {
		shown = append(shown, "oversellRate", o.Oversell.String(), "pauseBorrowing", o.PauseBorrowing)
	}
	if without := o.withoutEffect(); len(without) > 0 {
		shown = append(shown, "withoutEffect", strings.Join(without, ", "))
	}
	return shown
}

// withoutEffect says where settings were given that mean nothing to the backend.
func (o *Options) withoutEffect() []string {
	var given []string
	for _, flag := range o.backend.idle {
		if setting := o.set.Lookup(flag); setting.Origin() != "" {
			given = append(given, setting.Origin())
		}
	}
	return given
}
