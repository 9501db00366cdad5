// Package options declares the settings of job-extensions.
package options

import (
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/pod"
	"kube-queue.dev/kube-queue/extensions/rayjob"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/devices"
	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/pkg/program/webhook"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// Name is the name of the program.
const Name = "job-extensions"

// Options are the settings of job-extensions.
type Options struct {
	Workers int
	// Kinds are the adapters, grouped by what marks their jobs.
	Kinds registry.Kinds
	// Devices are the rules for devices.
	Devices devices.Settings
	// Webhook are the settings of the webhooks.
	Webhook webhook.Settings
	// ShutDownRayClusters is whether to delete RayClusters that would outlive their RayJobs.
	ShutDownRayClusters bool
	// Additional is what pods request in addition to their templates.
	Additional requests.Additional
	// CheckUninstall is whether to only check that no pods wait at the gate.
	CheckUninstall bool

	enabled, annotated, additional string
}

// New returns the defaults.
func New() *Options {
	return &Options{enabled: registry.Default, Workers: 8, Webhook: webhook.DefaultSettings()}
}

// Program returns the program with these options. The caller sets Environ and Run.
func (o *Options) Program() program.Program {
	return program.Program{Name: Name, Kind: "JobExtensionsConfiguration", Settings: o.declare, Validate: o.checkEnabled, LeaseLabels: o.leaseLabels, InForce: o.inForce,
		NeedsNoUnits: func() bool { return o.CheckUninstall }}
}

func (o *Options) declare(set *settings.Set) {
	set.Group("Jobs",
		settings.Setting{Var: &o.enabled, Flag: "enabled-extensions", Field: "enabledExtensions", Form: settings.List(), Check: o.checkEnabled,
			Help: "Comma-separated kinds of jobs to queue; empty for none. Known kinds: " + strings.Join(registry.Names(), ", ") + "."},
		settings.Setting{Var: &o.annotated, Flag: "annotation-extensions", Field: "annotationExtensions", Form: settings.List(), Check: o.checkEnabled,
			Help: "Comma-separated kinds where only the annotation " + wellknown.SuspendAnnotation + " queues a job; empty for none." +
				" Jobs that are only created suspended are not queued. If a kind is also in --enabled-extensions, that flag applies."},
		settings.Setting{Var: &o.ShutDownRayClusters, Flag: "shut-down-ray-clusters", Field: "shutDownRayClusters", Check: o.checkEnabled,
			Help: "Set shutdownAfterJobFinishes when releasing RayJobs that set neither this field nor deletionStrategy. Their RayClusters then do not keep quota after the jobs end."},
		settings.Setting{Var: &o.Workers, Flag: "workers", Field: "workers", Check: settings.Above0(&o.Workers),
			Help: "Maximum number of concurrent reconciles per kind."},
		settings.Setting{Var: &o.CheckUninstall, Flag: "check-uninstall", Field: "checkUninstall",
			Help: "Only check that no pods wait at the scheduling gate of kube-queue, which nothing removes after an uninstallation. Exits with status 1 if some do. The chart runs this before it is uninstalled."})
	set.Group("Pods", settings.Setting{Var: &o.additional, Flag: "additional-resources", Field: "additionalResources", Form: settings.Resources(), Check: o.checkAdditional,
		Help: "Requests and limits that webhooks add to each pod, for example by sidecars: NAMESPACE:requests.RESOURCE=AMOUNT:limits.RESOURCE=AMOUNT," +
			" separated by commas; NAMESPACE: for nothing. Namespace * means all other namespaces."})
	o.Devices.Declare(set)
	o.Webhook.Declare(set, "which holds jobs if the API server does not serve MutatingAdmissionPolicy")
	for _, name := range [...]string{"QueueGroupPlugin", "StrictPriority", "StrictConsistency"} {
		set.PassOver(name, "only kube-queue-controller reads it, not "+Name)
	}
}

// checkEnabled also runs once after all settings are read, because otherwise the default value is never checked.
func (o *Options) checkEnabled() error {
	kinds, err := registry.Split(o.enabled, o.annotated)
	if err != nil {
		return err
	}
	if o.ShutDownRayClusters {
		kinds.Replace(rayjob.ShuttingDown())
	}
	o.Kinds = kinds
	return nil
}

func (o *Options) checkAdditional() (err error) {
	o.Additional, err = requests.ParseAdditional(o.additional)
	return err
}

// Rules returns the rules for what pods request.
func (o *Options) Rules() requests.Rules {
	rules := o.Devices.Rules
	rules.Additional = o.Additional
	return rules
}

// leaseLabels tells kube-queue-controller which kinds of jobs are not released.
func (o *Options) leaseLabels() map[string]string {
	labels := map[string]string{}
	for _, name := range registry.NamesOf(registry.All()) {
		labels[wellknown.ExtensionLabelPrefix+name] = wellknown.ExtensionOn
	}
	for _, name := range registry.NamesOf(o.Kinds.Others) {
		labels[wellknown.ExtensionLabelPrefix+name] = wellknown.ExtensionOff
	}
	labels[wellknown.ExtensionLabelPrefix+pod.Name] = wellknown.ExtensionOff
	if len(o.Kinds.Pods) > 0 {
		labels[wellknown.ExtensionLabelPrefix+pod.Name] = wellknown.ExtensionOn
	}
	return labels
}

func (o *Options) inForce() []any {
	return []any{"enabledExtensions", registry.NamesOf(o.Kinds.Enabled), "annotationExtensions", registry.NamesOf(o.Kinds.Annotated), "notQueued", registry.NamesOf(o.Kinds.Others), "pods", len(o.Kinds.Pods) > 0, "shutDownRayClusters", o.ShutDownRayClusters, "workers", o.Workers, "additionalResources", o.additional, "deviceClasses", o.Devices.Classes, "deviceTypes", o.Devices.Types, "webhook", o.Webhook.Address}
}
