package command

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
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

// many is the number of units from which similar units are shown in one row.
const many = 100

type listOptions struct {
	output
	units.Filter
	all   bool
	group string
	sort  string
}

func (s *shell) list() *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the units of jobs that wait or hold quota",
		Long: `Lists the QueueUnits in a namespace or in all namespaces. To list units of jobs that have ended, use --phase.

If there are more than 100 units, units with the same namespace, queue, kind, phase, reason, priority and
request share a row. UNITS is their number, and NAME is the first of them.`,
		Example: `  kubectl kube-queue list
  kubectl kube-queue list -A --queue company-research --phase Enqueued
  kubectl kube-queue list --reason ExceedsMaxQuota -o wide
  kubectl kube-queue list --group never -o name`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
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
	flags.StringVar(&o.sort, "sort", string(units.ByName), "`ORDER`: "+strings.Join(units.Orders(), ", ")+".")
	flags.BoolVarP(&o.watch, "watch", "w", false, "Keep printing units that change, until Ctrl-C.")
	_ = cmd.RegisterFlagCompletionFunc("queue", s.completeQueues)
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(jobs.KindNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(units.Phases(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("reason", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("group", cobra.FixedCompletions([]string{groupAuto, groupAlways, groupNever}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(units.Orders(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// complete checks the flags.
func (o *listOptions) complete() error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.CheckPhases(); err != nil {
		return usageError{fmt.Errorf("--phase: %w", err)}
	}
	for _, c := range []struct {
		flag, value string
		known       []string
	}{{"group", o.group, []string{groupAuto, groupAlways, groupNever}}, {"sort", o.sort, units.Orders()}} {
		if !slices.Contains(c.known, c.value) {
			return usageError{fmt.Errorf("--%s: unknown value %q; known values: %s", c.flag, c.value, strings.Join(c.known, ", "))}
		}
	}
	if len(o.Kinds) > 0 {
		for _, kind := range o.Kinds {
			if slices.ContainsFunc(jobs.KindNames(), func(known string) bool { return strings.EqualFold(known, kind) }) {
				continue
			}
			if meant := didYouMean(kind, jobs.KindNames()); meant != "" {
				return usageError{fmt.Errorf("--kind: no unit can be of kind %q%s", kind, meant)}
			}
		}
	}
	if o.watch && o.group == groupAlways {
		return usageError{fmt.Errorf("--watch and --group always cannot be combined, because each change is of one unit")}
	}
	return nil
}

// selects reports whether a unit is shown. Units that have ended are shown only if a phase selects them.
func (o *listOptions) selects(u *units.Unit) bool {
	return o.Selects(u) && (len(o.Phases) > 0 || !u.Phase().Ended())
}

func (c *cluster) listUnits(ctx context.Context, o *listOptions) error {
	namespace := c.namespace
	if o.all {
		namespace = ""
	}
	if o.watch {
		return c.watchUnits(ctx, o, namespace)
	}
	if !o.isTable() {
		return c.printUnits(ctx, o, namespace)
	}
	seen := units.Seen{}
	first, most := 2*many, many // some of the first may not be selected
	if o.group == groupNever {
		first, most = pageSize, math.MaxInt
	}
	list, complete, err := c.selectUnits(ctx, o, namespace, first, most, &seen)
	if err != nil {
		return err
	}
	if !complete { // kube-queue-controller counts faster than the rest can be read
		review, err := c.askGroups(ctx, o)
		if err == nil {
			return c.showGroups(review, o)
		}
		if reviews.IsUnanswered(err) == nil {
			return err
		}
		if list, _, err = c.selectUnits(ctx, o, namespace, pageSize, math.MaxInt, &seen); err != nil {
			return err
		}
	}
	return c.showUnits(ctx, list, o, namespace, &seen)
}

// selectUnits reads units until there are no more, or more than most of them are selected, and returns the selected
// ones. The first page has at most the given number of units.
func (c *cluster) selectUnits(ctx context.Context, o *listOptions, namespace string, first, most int, seen *units.Seen) (list []units.Unit, complete bool, err error) {
	err = c.pages(ctx, namespace, first, func(page *units.Page) bool {
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
func (c *cluster) askGroups(ctx context.Context, o *listOptions) (*visibility.QueueReview, error) {
	if len(o.Queues) > 1 || o.sort != string(units.ByName) {
		return nil, &reviews.Unanswered{Why: "a review has one queue and its order"}
	}
	spec := visibility.QueueReviewSpec{AllNamespaces: o.all, Phases: o.canonicalPhases(), Kinds: o.Kinds, Reasons: o.Reasons, Show: visibility.ShowGroups}
	if len(o.Queues) == 1 {
		spec.Queue = o.Queues[0]
	}
	return c.reviews().Queues(ctx, c.namespace, spec, mostRows)
}

// canonicalPhases are the phases in the letter case of the API.
func (o *listOptions) canonicalPhases() []string {
	var phases []string
	for _, phase := range units.Phases() {
		if slices.ContainsFunc(o.Phases, func(p string) bool { return strings.EqualFold(p, phase) }) {
			phases = append(phases, phase)
		}
	}
	return phases
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
		c.warn("%s of namespaces that you may not read not shown.", text.Count(int(n), "unit"))
	}
	return nil
}

// showUnits writes units that were read.
func (c *cluster) showUnits(ctx context.Context, list []units.Unit, o *listOptions, namespace string, seen *units.Seen) error {
	if len(list) == 0 {
		return c.nothing(ctx, o, namespace, seen)
	}
	units.Sort(list, units.Order(o.sort))
	grouped := o.group == groupAlways || o.group == groupAuto && len(list) > many
	groups := units.Singles(list)
	if grouped {
		groups = units.Together(list)
	}
	view := c.view(&o.output)
	view.Namespaces = o.all
	return render.Rows(c.Streams.Out, groups, grouped, view)
}

// nothing says that no unit was found, like kubectl. A namespace that does not exist, or a filter that is probably
// misspelled, is an error.
func (c *cluster) nothing(ctx context.Context, o *listOptions, namespace string, seen *units.Seen) error {
	if flag, meant := seen.Meant(o.Filter); meant != "" {
		return fmt.Errorf("no unit has this %s; did you mean --%s %s?", flag, flag, meant)
	}
	if namespace == "" {
		c.warn("No units found.")
		return nil
	}
	if err := c.checkNamespace(ctx, namespace); err != nil {
		return err
	}
	c.warn("No units found in namespace %s.", namespace)
	return nil
}

// printUnits writes complete objects, or their names.
func (c *cluster) printUnits(ctx context.Context, o *listOptions, namespace string) error {
	var shown []units.Unit
	objects := map[string]unstructured.Unstructured{} // by UID
	if _, err := c.objectPages(ctx, namespace, func(items []unstructured.Unstructured) error {
		for i := range items {
			u, err := read(&items[i])
			if err != nil {
				return err
			}
			if o.selects(u) {
				shown, objects[u.Metadata.UID] = append(shown, *u), items[i]
			}
		}
		return nil
	}); err != nil {
		return err
	}
	units.Sort(shown, units.Order(o.sort))
	list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{},
		Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}}}
	for i := range shown {
		list.Items = append(list.Items, objects[shown[i].Metadata.UID])
	}
	if o.format == formatName {
		printer := &printers.NamePrinter{}
		for i := range list.Items {
			if err := printer.PrintObj(&list.Items[i], c.Streams.Out); err != nil {
				return err
			}
		}
		return nil
	}
	return o.object(c.Streams.Out, list)
}

// objectPages calls visit with each page of complete units, and returns the version of the list.
func (c *cluster) objectPages(ctx context.Context, namespace string, visit func([]unstructured.Unstructured) error) (string, error) {
	for next := ""; ; {
		page, err := c.dynamic.Resource(unitResource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if err != nil {
			return "", err
		}
		if err := visit(page.Items); err != nil {
			return "", err
		}
		if next = page.GetContinue(); next == "" {
			return page.GetResourceVersion(), nil
		}
	}
}

// read converts an object to the part that is shown.
func read(object *unstructured.Unstructured) (*units.Unit, error) {
	data, err := object.MarshalJSON()
	u := &units.Unit{}
	if err == nil {
		err = json.Unmarshal(data, u)
	}
	if err != nil {
		return nil, fmt.Errorf("reading unit %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return u, nil
}
