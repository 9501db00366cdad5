// Package options declares the settings of kube-queue-controller.
package options

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/devices"
	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/pkg/program/webhook"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Name is the name of the program.
const Name = "kube-queue-controller"

// InvariantAudit is the feature that verifies every few minutes that used quota equals the
// sum of all charges.
const InvariantAudit featuregate.Feature = "InvariantAudit"

// Flags that are referenced in more than one place.
const (
	flagOversell          = "oversell-rate"
	flagReclaim           = "reclaim"
	flagPauseBorrowing    = "pause-borrowing"
	flagCountUnqueuedPods = "count-unqueued-pods"
)

// Options are the settings of kube-queue-controller.
type Options struct {
	Reclaim           bool
	PauseBorrowing    bool
	CountUnqueuedPods bool
	// UnrenewedUnitTimeout is how long a unit that was created by hand holds quota without a renewal.
	UnrenewedUnitTimeout time.Duration
	Workers              int
	StatusInterval       time.Duration
	CheckInvariants      bool
	Backoff              queue.Backoff
	// Devices are the rules for devices.
	Devices devices.Settings
	// Webhook are the settings of the webhook that answers reviews.
	Webhook webhook.Settings

	// The parsed values of the settings below.
	Oversell resources.Rate
	Policy   *queue.Policy
	backend  quotaBackend

	oversellRate, policyName, backendName string
	set                                   *settings.Set
}

// New returns the defaults.
func New() *Options {
	return &Options{
		Workers: 32, StatusInterval: controller.PublishInterval, Backoff: queue.DefaultBackoff(), Policy: queue.RoundRobin, backend: backends()[0],
		Reclaim: true, PauseBorrowing: true, UnrenewedUnitTimeout: 24 * time.Hour, Webhook: webhook.DefaultSettings(),
		oversellRate: "1.0", policyName: queue.RoundRobin.Name, backendName: backends()[0].name,
	}
}

// Program returns the program with these options. The caller sets Environ and Run.
func (o *Options) Program() program.Program {
	return program.Program{
		Name: Name, Kind: "KubeQueueControllerConfiguration",
		Settings: o.declare, Validate: o.validate, InForce: o.inForce,
		Features: map[featuregate.Feature]featuregate.FeatureSpec{
			InvariantAudit: {Default: true, PreRelease: featuregate.Beta},
		},
	}
}

// Source returns the source of the selected quota backend.
func (o *Options) Source() backend.Source { return o.backend.source(o) }

func (o *Options) declare(set *settings.Set) {
	o.set = set
	set.Group("Quota", o.addQuotaFlags,
		settings.Setting{Flag: "quota-backend", Field: "quotaBackend", Env: []string{envBackend}, Check: o.checkBackend},
		settings.Setting{Flag: flagOversell, Field: "oversellRate", Form: settings.Amount, Check: o.checkOversell},
		settings.Setting{Flag: flagReclaim, Field: "reclaim"},
		settings.Setting{Flag: flagPauseBorrowing, Field: "pauseBorrowing"},
		settings.Setting{Flag: flagCountUnqueuedPods, Field: "countUnqueuedPods"},
		settings.Setting{Flag: "unrenewed-unit-timeout", Field: "unrenewedUnitTimeout", Check: o.checkUnrenewedUnitTimeout})
	set.Group("Order", o.addOrderFlags,
		settings.Setting{Flag: "policy", Field: "policy", Env: []string{envStrictPriority, envStrictConsistency}, FromEnv: policyOf, Check: o.checkPolicy},
		settings.Setting{Flag: "backoff-initial", Field: "backoff.initial", Check: func() error { return checkBackoff(o.Backoff.Initial) }},
		settings.Setting{Flag: "backoff-max", Field: "backoff.max", Check: func() error { return checkBackoff(o.Backoff.Max) }})
	o.Devices.Declare(set)
	set.Group("Work", o.addWorkFlags,
		settings.Setting{Flag: "workers", Field: "workers", Check: o.checkWorkers},
		settings.Setting{Flag: "status-interval", Field: "statusInterval", Check: o.checkStatusInterval},
		settings.Setting{Flag: "check-invariants", Field: "checkInvariants"})
	o.Webhook.DeclareLed(set, "which answers reviews of group visibility.kube-queue.dev")
}

func (o *Options) addQuotaFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.backendName, "quota-backend", o.backendName,
		"Quota backend, case-insensitive: "+strings.Join(backendNames(), " or ")+".")
	fs.StringVar(&o.oversellRate, flagOversell, o.oversellRate,
		`Factor for every max of the quota tree, a decimal. It also applies to "`+wellknown.MaxJobsResource+`".`)
	fs.BoolVar(&o.Reclaim, flagReclaim, o.Reclaim,
		"Evict jobs that use more than the min of their quota for jobs within the min of theirs. If no job can be evicted, pause borrowing.")
	fs.BoolVar(&o.PauseBorrowing, flagPauseBorrowing, o.PauseBorrowing,
		"Without reclaim: pause borrowing of a resource while a unit waits for guaranteed quota that others have borrowed.")
	fs.BoolVar(&o.CountUnqueuedPods, flagCountUnqueuedPods, o.CountUnqueuedPods,
		"Charge pods without a unit, such as notebooks, to the quota of their namespace. Exceptions: pods of DaemonSets in namespaces that are not managed, static pods in kube-system, and other pods of kube-system unless a node of the tree lists it by name.")
	fs.DurationVar(&o.UnrenewedUnitTimeout, "unrenewed-unit-timeout", o.UnrenewedUnitTimeout,
		"How long a QueueUnit created by hand holds quota after its admission or last renewal. Then it ends. 0 means forever.")
}

func (o *Options) addOrderFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.policyName, "policy", o.policyName,
		"Policy of Queues that do not set one: "+strings.Join(queue.PolicyNames(), ", ")+".")
	fs.DurationVar(&o.Backoff.Initial, "backoff-initial", o.Backoff.Initial,
		"With policy RoundRobin: how long a refused unit lets other units go first. Doubles with each refusal.")
	fs.DurationVar(&o.Backoff.Max, "backoff-max", o.Backoff.Max,
		"Maximum time that a refused unit lets other units go first.")
}

func (o *Options) addWorkFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.Workers, "workers", o.Workers, "Maximum number of concurrent status writes.")
	fs.DurationVar(&o.StatusInterval, "status-interval", o.StatusInterval,
		"Minimum time between two status writes of a Queue or of the quota tree.")
	fs.BoolVar(&o.CheckInvariants, "check-invariants", o.CheckInvariants,
		"After every event, verify that used quota equals the sum of all charges, and exit if it does not. For tests only: the duration is proportional to the number of units.")
}

func (o *Options) checkOversell() (err error) {
	o.Oversell, err = resources.ParseRate(o.oversellRate)
	return err
}

func (o *Options) checkUnrenewedUnitTimeout() error {
	if o.UnrenewedUnitTimeout < 0 {
		return fmt.Errorf("must be 0 or more, not %v", o.UnrenewedUnitTimeout)
	}
	return nil
}

func (o *Options) checkWorkers() error {
	if o.Workers < 1 {
		return fmt.Errorf("must be greater than 0, not %d", o.Workers)
	}
	return nil
}

// longestStatusInterval is when a status is too old to be useful.
const longestStatusInterval = time.Hour

func (o *Options) checkStatusInterval() error {
	if o.StatusInterval <= 0 || o.StatusInterval > longestStatusInterval {
		return fmt.Errorf("must be greater than 0 and at most %v, not %v", longestStatusInterval, o.StatusInterval)
	}
	return nil
}

// longestBackoff is far longer than any useful backoff and short enough to be doubled without
// overflow.
const longestBackoff = 24 * time.Hour

func checkBackoff(d time.Duration) error {
	if d <= 0 || d > longestBackoff {
		return fmt.Errorf("must be greater than 0 and at most %v, not %v", longestBackoff, d)
	}
	return nil
}

func (o *Options) validate() error {
	if o.Backoff.Initial > o.Backoff.Max {
		return fmt.Errorf("--backoff-initial (%v) must not be greater than --backoff-max (%v)", o.Backoff.Initial, o.Backoff.Max)
	}
	return nil
}

func (o *Options) inForce() []any {
	shown := []any{"quotaBackend", o.backend.name, "policy", o.Policy, "deviceClasses", o.Devices.Classes, "deviceTypes", o.Devices.Types, "webhook", o.Webhook.Address}
	if len(o.backend.idle) == 0 {
		shown = append(shown, "oversellRate", o.Oversell.String(), "reclaim", o.Reclaim, "pauseBorrowing", o.PauseBorrowing, "countUnqueuedPods", o.CountUnqueuedPods)
	}
	if without := o.withoutEffect(); len(without) > 0 {
		shown = append(shown, "withoutEffect", strings.Join(without, ", "))
	}
	return shown
}

// withoutEffect returns the origins of the settings that the backend ignores.
func (o *Options) withoutEffect() []string {
	var given []string
	for _, flag := range o.backend.idle {
		if setting := o.set.Lookup(flag); setting.Origin() != "" {
			given = append(given, setting.Origin())
		}
	}
	return given
}
