// Package options declares the settings of kube-queue-controller.
package options

import (
	"fmt"
	"strings"
	"time"

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

// InvariantAudit is the feature that verifies every few minutes that used quota equals the sum of all charges.
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
	// UnrenewedUnitTimeout is how long a unit that a user created holds quota without a renewal.
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
	set.Group("Quota",
		settings.Setting{Var: &o.backendName, Flag: "quota-backend", Field: "quotaBackend", Env: []string{envBackend}, Check: o.checkBackend,
			Help: "Quota backend, case-insensitive: " + strings.Join(backendNames(), " or ") + "."},
		settings.Setting{Var: &o.oversellRate, Flag: flagOversell, Field: "oversellRate", Form: settings.Amount(), Check: o.checkOversell,
			Help: `Decimal factor that multiplies every max of the quota tree, including "` + wellknown.MaxJobsResource + `".`},
		settings.Setting{Var: &o.Reclaim, Flag: flagReclaim, Field: "reclaim",
			Help: "Evict jobs of quotas above their min for jobs within the min of their own quota. If no job can be evicted, pause borrowing."},
		settings.Setting{Var: &o.PauseBorrowing, Flag: flagPauseBorrowing, Field: "pauseBorrowing",
			Help: "Without reclaim: pause borrowing of a resource while a unit waits for guaranteed quota that others have borrowed."},
		settings.Setting{Var: &o.CountUnqueuedPods, Flag: flagCountUnqueuedPods, Field: "countUnqueuedPods",
			Help: "Charge pods without a unit, such as notebooks, to the quota of their namespace. Not charged: pods of DaemonSets in namespaces that are not managed, static pods in kube-system, and other pods in kube-system unless a node of the tree lists it by name."},
		settings.Setting{Var: &o.UnrenewedUnitTimeout, Flag: "unrenewed-unit-timeout", Field: "unrenewedUnitTimeout", Check: o.checkUnrenewedUnitTimeout,
			Help: "How long a QueueUnit created by hand holds quota after its admission or last renewal. Then it ends. 0 means forever."})
	set.Group("Order",
		settings.Setting{Var: &o.policyName, Flag: "policy", Field: "policy", Env: []string{envStrictPriority, envStrictConsistency}, FromEnv: policyOf, Check: o.checkPolicy,
			Help: "Policy of Queues that do not set one: " + strings.Join(queue.PolicyNames(), ", ") + "."},
		settings.Setting{Var: &o.Backoff.Initial, Flag: "backoff-initial", Field: "backoff.initial", Check: func() error { return upTo(longestBackoff, o.Backoff.Initial) },
			Help: "With policy RoundRobin: how long a refused unit lets other units go first. Doubles with each refusal."},
		settings.Setting{Var: &o.Backoff.Max, Flag: "backoff-max", Field: "backoff.max", Check: func() error { return upTo(longestBackoff, o.Backoff.Max) },
			Help: "Maximum time that a refused unit lets other units go first."})
	o.Devices.Declare(set)
	set.Group("Work",
		settings.Setting{Var: &o.Workers, Flag: "workers", Field: "workers", Check: settings.Above0(&o.Workers),
			Help: "Maximum number of concurrent status writes."},
		settings.Setting{Var: &o.StatusInterval, Flag: "status-interval", Field: "statusInterval", Check: func() error { return upTo(longestStatusInterval, o.StatusInterval) },
			Help: "Minimum time between two status writes of a Queue or of the quota tree."},
		settings.Setting{Var: &o.CheckInvariants, Flag: "check-invariants", Field: "checkInvariants",
			Help: "After every event, verify that used quota equals the sum of all charges, and exit if it does not. For tests only: the duration is proportional to the number of units."})
	o.Webhook.DeclareLed(set, "which answers reviews of group visibility.kube-queue.dev")
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

const (
	// longestStatusInterval is the maximum, because an older status is not useful.
	longestStatusInterval = time.Hour
	// longestBackoff is far longer than any useful backoff, but short enough to be doubled without overflow.
	longestBackoff = 24 * time.Hour
)

func upTo(longest, d time.Duration) error {
	if d <= 0 || d > longest {
		return fmt.Errorf("must be greater than 0 and at most %v, not %v", longest, d)
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
