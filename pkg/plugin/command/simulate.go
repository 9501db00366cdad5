package command

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/files"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

// simulateName is the name of the command, whose exit status differs from those of others.
const simulateName = "simulate"

func (s *shell) simulate() *cobra.Command {
	o := &output{}
	var files []string
	cmd := &cobra.Command{
		Use:   simulateName + " -f FILE",
		Short: "Show what would start and what would wait with another quota tree or more jobs",
		Long: `Shows what would start immediately, and what would wait and why, if you applied the quota tree or the jobs in
the files now. All jobs in the cluster are included. Nothing is applied. The plugin makes the same decisions
as kube-queue-controller with its default settings.

A FILE is a YAML or JSON file with any number of documents, or - for standard input. It can contain one
ElasticQuotaTree, QueueUnits, and jobs of all kinds whose manifest determines their pods. You need
permission to list QueueUnits in all namespaces, Queues and ElasticQuotaTrees.

In the simulation, evicted jobs stop immediately. Admission checks and nodes are not simulated.

The exit status is 0 if the tree is valid and each job in the files would start immediately; 1 if the tree
is invalid, a job would wait, or running jobs would exceed a limit; 2 after an error.`,
		Example: `  kubectl kube-queue simulate -f tree.yaml
  kubectl kube-queue simulate -f tree.yaml -f job.yaml -n research
  kustomize build . | kubectl kube-queue simulate -f -`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if len(files) == 0 {
				return usageError{errors.New("no file is given; name the files with the tree or the jobs with --filename, or - for the standard input")}
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			return c.simulateFiles(cmd.Context(), o, files)
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "`FILE` with a quota tree or jobs; - for the standard input.")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	o.add(cmd, formatTable, formatJSON, formatYAML)
	return cmd
}

// question is what the files contain.
type question struct {
	// tree is the tree of the files; nil if they have none.
	tree *unstructured.Unstructured
	// jobs are the jobs of the files as units, and invalid those that could never start.
	jobs    []v1alpha1.QueueUnit
	invalid []objects.SimulatedJob
}

func (c *cluster) simulateFiles(ctx context.Context, o *output, files []string) error {
	q := &question{}
	cluster := c.measure(ctx)
	for _, file := range files {
		if err := c.readFile(q, file, cluster); err != nil {
			return err
		}
	}
	simulation, err := c.simulateQuestion(ctx, q, cluster)
	if err != nil {
		return err
	}
	return c.conclude(o, q, simulation)
}

// simulateQuestion returns what would happen.
func (c *cluster) simulateQuestion(ctx context.Context, q *question, cluster *measured) (*objects.Simulation, error) {
	if q.tree == nil && len(q.jobs)+len(q.invalid) == 0 {
		return nil, errors.New("the files have no ElasticQuotaTree and no job")
	}
	if len(cluster.hidden) > 0 {
		c.warn("You may not read %s: what the jobs request may differ.", strings.Join(slices.Sorted(maps.Keys(cluster.hidden)), ", "))
	}
	if q.tree != nil {
		// Read as a user wrote it: the API server rejects fields that the controller ignores.
		if faults, warnings := manifest.CheckManifest(q.tree); len(faults) > 0 {
			return &objects.Simulation{Faults: faults, Warnings: warnings}, nil
		}
	}
	trial, err := c.trial(ctx, q)
	if err != nil {
		return nil, err
	}
	simulation, err := objects.Simulate(*trial, c.Now())
	if err != nil {
		return nil, err
	}
	simulation.Jobs = append(simulation.Jobs, q.invalid...)
	return simulation, nil
}

// trial reads the cluster.
func (c *cluster) trial(ctx context.Context, q *question) (*objects.Trial, error) {
	trial := &objects.Trial{Jobs: q.jobs}
	tree, err := c.treeInUse(ctx)
	if err != nil {
		return nil, err
	}
	if tree != nil {
		trial.Quotas, _ = objects.Tree(tree)
	}
	switch {
	case q.tree != nil:
		tree = q.tree
	case tree == nil:
		return nil, errNoTree
	}
	trial.Root = manifest.Root(tree)
	if trial.Queues, err = c.queues(ctx); err != nil {
		return nil, err
	}
	for next := ""; ; {
		page, err := c.queue.SchedulingV1alpha1().QueueUnits("").List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if err != nil {
			return nil, err
		}
		trial.Units = append(trial.Units, page.Items...)
		if next = page.Continue; next == "" {
			return trial, nil
		}
	}
}

// conclude writes the answer and decides the exit status.
func (c *cluster) conclude(o *output, q *question, simulation *objects.Simulation) error {
	if err := c.writeSimulation(o, q, simulation); err != nil {
		return err
	}
	waits := slices.ContainsFunc(simulation.Jobs, func(job objects.SimulatedJob) bool { return !job.Starts })
	if waits || len(simulation.Faults) > 0 || len(simulation.OverLimits) > 0 {
		return verdict(exitNegative)
	}
	return nil
}

func (c *cluster) writeSimulation(o *output, q *question, simulation *objects.Simulation) error {
	if o.isTable() {
		return render.Simulation(c.Streams.Out, simulation, q.tree != nil, c.view(o))
	}
	data, err := json.MarshalIndent(simulation, "", "    ")
	if err == nil && o.format == formatYAML {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Streams.Out, strings.TrimSuffix(string(data), "\n"))
	return err
}

// readFile adds what a file contains.
func (c *cluster) readFile(q *question, file string, cluster *measured) error {
	from, file, err := files.Open(file, "the files", c.Streams.In)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := c.readDocuments(q, from, cluster); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// readDocuments adds what YAML or JSON documents contain.
func (c *cluster) readDocuments(q *question, from io.Reader, cluster *measured) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(from))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = c.readDocument(q, document, cluster)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", number, err)
		}
	}
}

func (c *cluster) readDocument(q *question, document []byte, cluster *measured) error {
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return fmt.Errorf("invalid YAML: %w", err)
	}
	if trimmed := bytes.TrimSpace(data); bytes.Equal(trimmed, []byte("null")) {
		return nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("not a Kubernetes object: %w", err)
	}
	return c.readObject(q, object, cluster)
}

func (c *cluster) readObject(q *question, object *unstructured.Unstructured, cluster *measured) error {
	if object.IsList() {
		list, err := object.ToList()
		if err != nil {
			return fmt.Errorf("reading a list: %w", err)
		}
		for i := range list.Items {
			if err := c.readObject(q, &list.Items[i], cluster); err != nil {
				return err
			}
		}
		return nil
	}
	gvk := object.GroupVersionKind()
	adapter := jobs.AdapterOf(gvk)
	switch {
	case gvk.Kind == manifest.Kind && gvk.Group == manifest.Group:
		return q.setTree(object)
	case gvk.Group == v1alpha1.GroupName && gvk.Kind == "QueueUnit":
		return q.addUnit(object, c)
	case adapter == nil:
		return fmt.Errorf("%s (%s) %q is neither a quota tree nor a job that kube-queue knows", gvk.Kind, object.GetAPIVersion(), object.GetName())
	}
	return q.addJob(object, c, cluster)
}

func (q *question) setTree(object *unstructured.Unstructured) error {
	if q.tree != nil {
		return errors.New("the files have more than one ElasticQuotaTree, and a cluster uses only one")
	}
	q.tree = object
	return nil
}

// addUnit adds a unit that a user creates.
func (q *question) addUnit(object *unstructured.Unstructured, c *cluster) error {
	unit := &v1alpha1.QueueUnit{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, unit); err != nil {
		return fmt.Errorf("unit %q: %w", object.GetName(), err)
	}
	q.add(c, unit.Name, cmp.Or(unit.Namespace, c.namespace), unit.Spec)
	return nil
}

// add adds a job as a unit that was just created. The names of real units have no slash.
func (q *question) add(c *cluster, name, namespace string, spec v1alpha1.QueueUnitSpec) {
	if spec.SubmissionTime == nil {
		spec.SubmissionTime = ptr.To(metav1.NewMicroTime(c.Now()))
	}
	q.jobs = append(q.jobs, v1alpha1.QueueUnit{Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: types.UID(fmt.Sprintf("simulated-%d", len(q.jobs))), ResourceVersion: "1", CreationTimestamp: metav1.NewTime(c.Now())}})
}

// addJob adds a job as job-extensions would read it.
func (q *question) addJob(object *unstructured.Unstructured, c *cluster, cluster *measured) error {
	accessor, err := apimeta.Accessor(object)
	if err != nil {
		return err
	}
	if accessor.GetName() == "" {
		accessor.SetName(cmp.Or(strings.TrimSuffix(accessor.GetGenerateName(), "-"), "job"))
	}
	if accessor.GetNamespace() == "" {
		accessor.SetNamespace(c.namespace)
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	adapter := jobs.AdapterOf(object.GroupVersionKind())
	observed, err := decision.Observe(adapter, data, nil, cluster)
	if err != nil {
		return fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName(), err)
	}
	name := strings.ToLower(object.GetKind()) + "/" + object.GetName()
	switch {
	case observed.Foreign != "":
		c.warn("%s would not be queued: %s.", name, observed.Foreign)
	case !observed.Marked:
		c.warn("%s has no mark and would be queued only in a managed namespace.", name)
	}
	if observed.Warning != "" {
		c.warn("%s: %s", name, observed.Warning)
	}
	if observed.Invalid != "" {
		q.invalid = append(q.invalid, objects.SimulatedJob{Name: name, Namespace: object.GetNamespace(), Reason: wellknown.ReasonInvalidRequest, Text: observed.Invalid})
		return nil
	}
	q.add(c, name, object.GetNamespace(), observed.Spec)
	return nil
}
