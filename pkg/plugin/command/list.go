package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

// Values of --group.
const (
	groupAuto   = "auto"
	groupAlways = "always"
	groupNever  = "never"
)

// many is the number of units above which similar units share a row.
const many = 100

// mostForStarts is how long the list of a few units waits for their estimates.
const mostForStarts = 2 * time.Second

type listOptions struct {
	output
	units.Filter
	// labels and fields are selectors.
	labels, fields string
	// job, if set, is the only one to list.
	job   *jobs.Reference
	all   bool
	group string
	sort  string
	// by, if set, is the field to sort by.
	by *field
}

func (s *shell) list() *cobra.Command {
	o := &listOptions{output: output{templates: true}}
	cmd := &cobra.Command{
		Use:   "list [" + jobArgs + "]",
		Short: "List jobs that wait or hold quota",
		Long: `Lists the jobs in a namespace or in all namespaces that wait or hold quota, or only one of them. To list jobs that
have ended, use --phase.

AGE is the time since the job was submitted. WAITED is the part of this time before its last admission.

If there are more than 100 jobs, jobs with the same namespace, queue, kind, phase, reason, priority and
request share a row. UNITS is their number, and JOB is the first of them. STARTS-IN is the estimate for the first.

Selectors, paths and templates refer to the QueueUnit of a job, which has the label ` + wellknown.KindLabel + `.
` + JobHelp,
		Example: `  kubectl kube-queue list
  kubectl kube-queue list -A --queue company-research --phase Enqueued
  kubectl kube-queue list --reason ExceedsMaxQuota -o wide
  kubectl kube-queue list -l ` + wellknown.KindLabel + `=RayJob --sort-by .status.dequeueTime
  kubectl kube-queue list -o custom-columns=JOB:.spec.consumerRef.name,CPU:.spec.resource.cpu
  kubectl kube-queue list --group never -o name`,
		Args:              func(*cobra.Command, []string) error { return nil },
		ValidArgsFunction: s.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			return c.listUnits(cmd.Context(), o)
		},
	}
	o.output.add(cmd, formatTable, formatWide, formatJSON, formatYAML, formatName)
	flags := cmd.Flags()
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "List the units in all namespaces.")
	flags.StringSliceVar(&o.Queues, "queue", nil, "Only units in these queues.")
	flags.StringSliceVar(&o.Kinds, "kind", nil, "Only units of jobs of these kinds, such as Job or PyTorchJob.")
	flags.StringSliceVar(&o.Phases, "phase", nil, "Only units in these phases: "+strings.Join(units.Phases(), ", ")+".")
	flags.StringSliceVar(&o.Reasons, "reason", nil, "Only units with these reasons, such as QuotaExceeded.")
	flags.StringVar(&o.group, "group", groupAuto, "`WHEN` to show similar units in one row: auto (if there are more than 100), always or never.")
	flags.StringVarP(&o.labels, "selector", "l", "", "Only units with these labels, as in kubectl.")
	flags.StringVar(&o.fields, "field-selector", "", "Only units with these fields, such as status.queue=company-research.")
	flags.StringVar(&o.sort, "sort-by", string(units.ByName), "`ORDER`: "+strings.Join(units.Orders(), ", ")+", or the path of a field such as .spec.priority.")
	flags.StringVar(&o.sort, "sort", string(units.ByName), "Former name of --sort-by.")
	_ = flags.MarkHidden("sort")
	flags.BoolVarP(&o.watch, "watch", "w", false, "Keep printing units that change, until Ctrl-C.")
	_ = cmd.RegisterFlagCompletionFunc("queue", s.completeQueues)
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(jobs.KindNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(units.Phases(), cobra.ShellCompDirectiveNoFileComp))
	for _, free := range []string{"reason", "selector", "field-selector"} {
		_ = cmd.RegisterFlagCompletionFunc(free, cobra.NoFileCompletions)
	}
	_ = cmd.RegisterFlagCompletionFunc("group", cobra.FixedCompletions([]string{groupAuto, groupAlways, groupNever}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions(units.Orders(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *listOptions) complete(args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if len(args) > 0 {
		job, err := jobs.Parse(args)
		if err != nil {
			return usageError{err}
		}
		o.job = &job
	}
	if err := o.completeOrder(); err != nil {
		return usageError{fmt.Errorf("--sort-by: %w", err)}
	}
	if err := o.CheckPhases(); err != nil {
		return usageError{fmt.Errorf("--phase: %w", err)}
	}
	if known := []string{groupAuto, groupAlways, groupNever}; !slices.Contains(known, o.group) {
		return usageError{fmt.Errorf("--group: unknown value %q; known values: %s", o.group, strings.Join(known, ", "))}
	}
	for _, kind := range o.Kinds {
		if meant := access.DidYouMean(kind, jobs.KindNames()); meant != "" && !containsFold(jobs.KindNames(), kind) {
			return usageError{fmt.Errorf("--kind: no unit can be of kind %q%s", kind, meant)}
		}
	}
	if o.watch && o.group == groupAlways {
		return usageError{fmt.Errorf("--watch and --group always cannot be combined, because each change is of one unit")}
	}
	return nil
}

func containsFold(list []string, word string) bool {
	return slices.ContainsFunc(list, func(entry string) bool { return strings.EqualFold(entry, word) })
}

func (o *listOptions) completeOrder() error {
	switch {
	case slices.Contains(units.Orders(), o.sort):
		return nil
	case !strings.Contains(o.sort, "."):
		return fmt.Errorf("unknown value %q; known values: %s, or the path of a field such as .spec.priority", o.sort, strings.Join(units.Orders(), ", "))
	case o.watch:
		return errors.New("--watch cannot sort by a field, because it shows each change when it happens")
	}
	by, err := parseField(o.sort)
	o.by = &by
	return err
}

// selects reports whether a unit is shown. Units that have ended are shown only if a phase or a name selects them.
func (o *listOptions) selects(u *units.Unit) bool {
	return o.Selects(u) && (o.job == nil || access.IsNamed(u, *o.job)) && (len(o.Phases) > 0 || o.job != nil || !u.Phase().Ended())
}

// selected returns the options of a request for the units.
func (o *listOptions) selected() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: o.labels, FieldSelector: o.fields}
}

func (c *cluster) listUnits(ctx context.Context, o *listOptions) error {
	namespace := c.Namespace
	if o.all {
		namespace = ""
	}
	if o.watch {
		return c.watchUnits(ctx, o, namespace)
	}
	seen := units.Seen{}
	if o.printer != nil || o.by != nil { // only complete objects have all fields
		list, err := c.readUnits(ctx, o, namespace, &seen)
		if err != nil {
			return err
		}
		return c.printUnits(ctx, list, o, namespace, &seen)
	}
	first, most := 2*many, many // some of the first may not be selected
	if o.group == groupNever {
		first, most = access.PageSize, math.MaxInt
	}
	list, complete, err := c.selectUnits(ctx, o, namespace, first, most, &seen)
	if err != nil {
		return err
	}
	if !complete { // a review is faster than reading the rest
		review, err := c.askGroups(ctx, o, &seen)
		if err == nil {
			return c.showGroups(review, o)
		}
		if reviews.IsUnanswered(err) == nil {
			return err
		}
		if list, _, err = c.selectUnits(ctx, o, namespace, access.PageSize, math.MaxInt, &seen); err != nil {
			return err
		}
	}
	return c.showUnits(ctx, list, o, namespace, &seen)
}

// selectUnits returns the selected units, and stops once it has more than most. The first page has at most first
// units.
func (c *cluster) selectUnits(ctx context.Context, o *listOptions, namespace string, first, most int, seen *units.Seen) (list []units.Unit, complete bool, err error) {
	selected := o.selected()
	selected.Limit = int64(first)
	err = c.Pages(ctx, namespace, selected, func(page *units.Page) bool {
		for i := range page.Items {
			seen.Add(&page.Items[i])
			if o.selects(&page.Items[i]) {
				list = append(list, page.Items[i])
			}
		}
		complete = page.Metadata.Continue == ""
		return len(list) <= most
	})
	return list, complete, err
}

// askGroups requests the groups of the units. A review selects one queue, or all.
func (c *cluster) askGroups(ctx context.Context, o *listOptions, seen *units.Seen) (*visibility.QueueReview, error) {
	if len(o.Queues) > 1 || o.sort != string(units.ByName) || o.job != nil || o.labels != "" || o.fields != "" {
		return nil, &reviews.Unanswered{Why: "a review has one queue and its order, and no selectors"}
	}
	phases := o.canonicalPhases()
	if slices.ContainsFunc(phases, func(p string) bool { return v1alpha1.QueueUnitPhase(p).Ended() }) {
		return nil, &reviews.Unanswered{Why: "a review has no units that have ended"}
	}
	if containsFold(o.Reasons, string(wellknown.ReasonPodsRemain)) {
		return nil, &reviews.Unanswered{Why: "a review has only the reasons of units that wait"}
	}
	spec := visibility.QueueReviewSpec{AllNamespaces: o.all, Phases: phases, Kinds: o.Kinds, Reasons: o.Reasons, Show: visibility.ShowGroups}
	if len(o.Queues) == 1 {
		spec.Queue = seen.Queue(o.Queues[0])
	}
	return c.Reviews().Queues(ctx, c.Namespace, spec, mostRows)
}

// canonicalPhases returns the selected phases in the letter case of the API.
func (o *listOptions) canonicalPhases() []string {
	return slices.DeleteFunc(units.Phases(), func(phase string) bool { return !containsFold(o.Phases, phase) })
}

func (c *cluster) showGroups(review *visibility.QueueReview, o *listOptions) error {
	view := c.view(&o.output)
	view.Namespaces = o.all
	if err := render.Groups(c.Streams.Out, review.Status.Groups, view); err != nil {
		return err
	}
	if n := int(review.Status.Total) - len(review.Status.Groups); n > 0 {
		c.warn("%s more not shown; select some with --queue, --kind, --phase or --reason.", text.Count(n, "group"))
	}
	if n := review.Status.Hidden; n > 0 {
		c.warn("Not shown: %s in namespaces that you cannot view.", text.Count(int(n), "unit"))
	}
	return nil
}

func (c *cluster) showUnits(ctx context.Context, list []units.Unit, o *listOptions, namespace string, seen *units.Seen) error {
	if len(list) == 0 {
		return c.nothing(ctx, o, namespace, seen)
	}
	if o.by == nil {
		units.Sort(list, units.Order(o.sort))
	}
	grouped := o.group == groupAlways || o.group == groupAuto && len(list) > many
	groups := units.Singles(list)
	if grouped {
		groups = units.Together(list)
	}
	view := c.view(&o.output)
	view.Namespaces, view.Starts = o.all, c.starts(ctx, o, list)
	return render.Rows(c.Streams.Out, groups, grouped, view)
}

// starts returns when a few listed units are expected to start. It asks one question, and returns nil without an answer:
// the list does not depend on it.
func (c *cluster) starts(ctx context.Context, o *listOptions, list []units.Unit) func(namespace, unit string) *visibility.StartEstimate {
	if len(list) > many || !slices.ContainsFunc(list, func(u units.Unit) bool { return u.Phase().Waits() }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, mostForStarts)
	defer cancel()
	spec := visibility.QueueReviewSpec{AllNamespaces: o.all, Phases: []string{string(v1alpha1.PhaseEnqueued), string(v1alpha1.PhaseBackoff)}, Show: visibility.ShowUnits, Limit: 2 * many}
	if len(o.Queues) == 1 {
		spec.Queue = list[0].Status.Queue // in its own letter case
	}
	review, err := c.Reviews().QueuePage(ctx, c.Namespace, spec)
	if err != nil {
		return nil
	}
	return func(namespace, unit string) *visibility.StartEstimate {
		for _, u := range review.Status.Units {
			if u.Namespace == namespace && u.Name == unit {
				return u.Start
			}
		}
		return nil
	}
}

// nothing reports that no unit was found, like kubectl. It returns an error if the namespace does not exist or a
// filter is probably misspelled.
func (c *cluster) nothing(ctx context.Context, o *listOptions, namespace string, seen *units.Seen) error {
	var queues []string
	if len(o.Queues) > 0 {
		queues = c.QueueNames(ctx)
	}
	unknown := func(list, known []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(word string) bool { return containsFold(known, word) })
	}
	odd := units.Filter{Queues: unknown(o.Queues, queues), Kinds: unknown(o.Kinds, jobs.KindNames()), Reasons: unknown(o.Reasons, objects.Reasons())}
	if flag, meant := seen.Meant(odd); meant != "" {
		return fmt.Errorf("no unit has this %s; did you mean --%s %s?", flag, flag, meant)
	}
	for _, kind := range odd.Kinds {
		if !seen.Kind(kind) { // a unit created by hand can have any kind
			return fmt.Errorf("no unit is of kind %q; the kinds of jobs are %s", kind, strings.Join(jobs.KindNames(), ", "))
		}
	}
	if len(odd.Reasons) > 0 {
		meant := access.DidYouMean(odd.Reasons[0], objects.Reasons())
		return fmt.Errorf("unknown reason %q%s", odd.Reasons[0], cmp.Or(meant, "; the reasons are "+strings.Join(objects.Reasons(), ", ")))
	}
	if len(queues) > 0 && len(odd.Queues) > 0 {
		return c.NoQueue(ctx, odd.Queues[0])
	}
	if namespace == "" && o.job == nil {
		c.warn("No units found.")
		return nil
	}
	if namespace != "" {
		if err := c.CheckNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	if o.job != nil {
		return fmt.Errorf("no unit of a job %q; kubectl kube-queue why explains why a job has none", o.job.Text)
	}
	c.warn("No units found in namespace %s.", namespace)
	return nil
}
