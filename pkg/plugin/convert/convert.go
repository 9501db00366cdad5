// Package convert is the command that converts objects of another queue to objects of kube-queue. It wraps
// pkg/migration: it reads files, and prints the objects and the settings without an equivalent. It has no client:
// users export and apply with kubectl, so they can review the result, and the command needs no permissions.
package convert

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/files"
	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/migration/ack"
	"kube-queue.dev/kube-queue/pkg/migration/kueue"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

// StatusError ends the program with a status, after everything is printed.
type StatusError struct {
	// Status is the exit status.
	Status int
	text   string
}

// Error returns what to print; empty if everything was printed.
func (e *StatusError) Error() string { return e.text }

// ExitStatus is the exit status of the program.
func (e *StatusError) ExitStatus() int { return e.Status }

// Exit statuses.
const (
	// StatusFindings means that the objects were converted, but some settings have no equivalent.
	StatusFindings = 1
	// StatusInput means that nothing was converted.
	StatusInput = 2
)

type options struct {
	genericiooptions.IOStreams
	files        []string
	from, output string
	only         string
	valuesFile   string
}

// NewCommand returns the command convert. It returns errors as *StatusError.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Convert the objects of Kueue, ack-kube-queue or koord-queue",
		Long: `Converts the objects of another queue into those of kube-queue. It connects to no cluster.

From Kueue, it reads ClusterQueues, Cohorts, LocalQueues, ResourceFlavors, WorkloadPriorityClasses,
AdmissionChecks, ProvisioningRequestConfigs, the configuration of its manager, and the manifests of
jobs. From ack-kube-queue and koord-queue, it reads ElasticQuotaTrees, ElasticQuotas, Queues, the
Deployments of both programs with their flags and variables, and the manifests of jobs.

Standard output has the converted objects. kubectl apply accepts all but jobs with generateName, which need
kubectl create. Standard error lists settings that have no equivalent, why, and what to do instead. It also
lists what you must do by hand.

The exit status is 0 if everything was converted, 1 if some settings have no equivalent, and 2 if the
input cannot be converted. In that case, standard output is empty.`,
		Example: `  kubectl kube-queue convert -f kueue.yaml > kube-queue.yaml
  kubectl get clusterqueues,cohorts,localqueues -A -o yaml | kubectl kube-queue convert -f -
  kubectl kube-queue convert -f ack/ --values values.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrong("unexpected argument %q; name files with -f", args[0])
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return o.run() },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return wrong("%v", err) })
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "Files with the objects, folders with .yaml, .yml and .json files, or - for standard input.")
	cmd.Flags().StringVar(&o.from, "from", "auto", "The queue that the objects come from: kueue, ack, koord, or auto to detect it.")
	cmd.Flags().StringVarP(&o.output, "output", "o", "yaml", "Format of the converted objects: yaml or json.")
	cmd.Flags().StringVar(&o.only, "only", "all", "Which converted objects to print: all, jobs, or settings (all but jobs).")
	cmd.Flags().StringVar(&o.valuesFile, "values", "", "File for the chart values that replace the other queue's flags and variables.")
	complete(cmd)
	return cmd
}

// complete adds completions of flags. It ignores errors, which are only about unknown flags.
func complete(cmd *cobra.Command) {
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions([]string{"auto", "kueue", "ack", "koord"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions([]string{"all", "jobs", "settings"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"yaml", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

func wrong(format string, args ...any) error {
	return &StatusError{Status: StatusInput, text: fmt.Sprintf(format, args...)}
}

func (o *options) run() error {
	if len(o.files) == 0 {
		return wrong("no file is given; name the files with -f, or -f - for the standard input")
	}
	if o.output != "yaml" && o.output != "json" {
		return wrong("the output %q is unknown; set yaml or json", o.output)
	}
	if o.only != "all" && o.only != "jobs" && o.only != "settings" {
		return wrong("--only %q is unknown; set all, jobs or settings", o.only)
	}
	documents, err := o.read()
	if err != nil {
		return wrong("%v", err)
	}
	convert, err := converterFor(o.from, documents)
	if err != nil {
		return wrong("%v", err)
	}
	result, err := convert(documents)
	if err != nil {
		return wrong("%v", err)
	}
	o.choose(result)
	warn(result, documents)
	return o.print(result)
}

// choose drops the objects that --only excludes.
func (o *options) choose(result *migration.Result) {
	result.Objects = slices.DeleteFunc(result.Objects, func(object *unstructured.Unstructured) bool {
		_, isJob := migration.KindOfJob(object)
		isJob = isJob || object.GetKind() == "CronJob"
		return o.only == "jobs" && !isJob || o.only == "settings" && isJob
	})
}

// warn adds steps about objects that kubectl apply refuses, and about a tree, which it replaces as a whole.
func warn(result *migration.Result, documents []migration.Document) {
	var nameless []string
	for _, object := range result.Objects {
		if object.GetName() == "" {
			nameless = append(nameless, migration.NameOf(object))
		}
		isInput := slices.ContainsFunc(documents, func(d migration.Document) bool { return migration.NameOf(d.Object) == migration.NameOf(object) })
		if object.GetKind() == manifest.Kind && !isInput {
			result.Step("%s is complete: kubectl apply replaces all of an earlier tree with this name. "+
				"Convert all files together, and compare with kubectl diff before you apply it again.", migration.NameOf(object))
		}
	}
	if len(nameless) > 0 {
		result.Step("kubectl apply refuses objects without a name. Print them with --only jobs, and create them with kubectl create: %s.", strings.Join(nameless, ", "))
	}
}

func (o *options) read() ([]migration.Document, error) {
	var documents []migration.Document
	var faults []string
	for _, file := range o.files {
		names, err := files.Expand(file, "the objects")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found, err := o.readFile(name)
			if input, is := errors.AsType[*migration.InputError](err); is {
				faults = append(faults, input.Faults...)
			} else if err != nil {
				return nil, err
			}
			documents = append(documents, found...)
		}
	}
	if faults != nil {
		return nil, &migration.InputError{Faults: faults}
	}
	if len(documents) == 0 {
		return nil, errors.New("the input has no objects")
	}
	return documents, nil
}

func (o *options) readFile(name string) ([]migration.Document, error) {
	file, name, err := files.Open(name, "the objects", o.In)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return migration.Read(name, file)
}

type converter = func([]migration.Document) (*migration.Result, error)

// converterFor returns the converter with the name, or the one that recognizes the objects.
func converterFor(name string, documents []migration.Document) (converter, error) {
	switch name {
	case "kueue":
		return kueue.Convert, nil
	case "ack", "koord":
		return ack.Convert, nil
	case "auto":
	default:
		return nil, fmt.Errorf("--from %q is unknown; set kueue, ack, koord or auto", name)
	}
	has := func(is func(*unstructured.Unstructured) bool) bool {
		return slices.ContainsFunc(documents, func(d migration.Document) bool { return is(d.Object) })
	}
	switch isKueue, isAck := has(kueue.Is), has(ack.Is); {
	case isKueue && isAck:
		return nil, errors.New("the input has objects of Kueue and of ack-kube-queue; convert them one after the other, with --from")
	case isKueue:
		return kueue.Convert, nil
	case isAck:
		return ack.Convert, nil
	default:
		return nil, errors.New("the input has no object of a queue that is known; set --from kueue, ack or koord if it has")
	}
}

// print prints the objects, the settings without an equivalent, the steps and the chart values.
func (o *options) print(result *migration.Result) error {
	values, err := o.values(result)
	if err != nil {
		return wrong("%v", err)
	}
	write := migration.WriteYAML
	if o.output == "json" {
		write = migration.WriteJSON
	}
	if err := write(o.Out, result.Objects); err != nil {
		return wrong("writing the objects: %v", err)
	}
	if len(result.Findings) > 0 {
		fmt.Fprintf(o.ErrOut, "Without an equivalent (%d):\n", len(result.Findings))
		for _, f := range result.Findings {
			fmt.Fprintf(o.ErrOut, "- %s: %s\n  why: %s\n  instead: %s\n", f.Object, f.Field, f.Why, f.Instead)
		}
	}
	if len(result.Steps) > 0 {
		fmt.Fprintf(o.ErrOut, "By hand (%d):\n", len(result.Steps))
		for _, step := range result.Steps {
			fmt.Fprintf(o.ErrOut, "- %s\n", step)
		}
	}
	printValues(o.ErrOut, values)
	if len(result.Findings) > 0 {
		return &StatusError{Status: StatusFindings}
	}
	return nil
}

// values writes the chart values to their file, or returns them if there is no file.
func (o *options) values(result *migration.Result) ([]byte, error) {
	if (result.Values == nil || o.only == "jobs") && o.valuesFile == "" {
		return nil, nil
	}
	text, err := yaml.Marshal(result.Values)
	if err != nil || o.valuesFile == "" {
		return text, err
	}
	if result.Values == nil {
		text = []byte("{}\n")
	}
	if err := os.WriteFile(o.valuesFile, text, 0o644); err != nil {
		return nil, fmt.Errorf("writing the values of the chart: %w", err)
	}
	return nil, nil
}

func printValues(to io.Writer, values []byte) {
	if len(values) > 0 {
		fmt.Fprintf(to, "Values of the chart:\n%s", values)
	}
}
