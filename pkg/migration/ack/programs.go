package ack

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// The programs of the former queue.
const (
	controller = "controller"
	extensions = "extensions"
)

// program returns which program a Deployment runs; empty if none.
func program(deployment string) string {
	switch deployment {
	case "kube-queue-controller", "koord-queue":
		return controller
	case "job-extensions", "koord-queue-controllers", "tf-operator-extension", "pytorch-operator-extension", "pytorch-operator-extesion":
		return extensions
	default:
		return ""
	}
}

// setting is a flag or variable of a program.
type setting struct {
	program, name string
	// convert sets the values of the chart.
	convert func(s *settingContext)
	// why and instead make a finding unless the value is one of harmless.
	why, instead string
	harmless     []string
}

type settingContext struct {
	c        *converter
	document migration.Document
	field    string
	value    string
}

func (s *settingContext) fault(format string, args ...any) {
	s.c.faults.Add(s.document, "%s: %s", s.field, fmt.Sprintf(format, args...))
}

func (s *settingContext) find(why, instead string) {
	s.c.result.Find(s.document.Name(), s.field, why, instead)
}

func (s *settingContext) isTrue() bool {
	on, err := strconv.ParseBool(s.value)
	if err != nil {
		s.fault("%q is neither true nor false", s.value)
	}
	return on
}

// ofTheProgram are settings that affect only the program itself. kube-queue has suitable defaults for them.
var ofTheProgram = []string{"kubeconfig", "qps", "burst", "leaderelection", "leader-elect", "leader-namespace", "workers", "wqqps",
	"metrics-bind-address", "health-probe-bind-address", "admissioncheckcontrollerworker", "schedulesuspendtimeinmillsecond",
	"v", "logtostderr", "zap-log-level", "KUBECONFIG", "POD_NAMESPACE", "POD_NAME", "default-requeue-period", "enable-job-extensions"}

// settings returns the flags and variables that affect jobs.
func settings() []setting {
	return []setting{
		{controller, "oversellrate", func(s *settingContext) {
			if _, err := resources.ParseRate(s.value); err != nil {
				s.fault("%v", err)
				return
			}
			s.c.result.SetValue(s.value, "controller", "config", "oversellRate")
		}, "", "", nil},
		{controller, "podInitialBackoffSeconds", seconds("initial"), "", "", nil},
		{controller, "podMaxBackoffSeconds", seconds("max"), "", "", nil},
		{controller, "StrictPriority", mode("strictPriority"), "", "", nil},
		{controller, "StrictConsistency", mode("strictConsistency"), "", "", nil},
		{controller, "QueueGroupPlugin", backend, "", "", nil},
		{controller, "defaultPreemptible", nil, "a job without the label kube-queue/preemptible is preemptible", `set the label kube-queue/preemptible: "false" on jobs that must not borrow`, []string{"true"}},
		{controller, "enableParentLimit", nil, "the max of each node above a group always counts", "nothing", []string{"true", "false"}},
		{controller, "enableApiHandler", nil, "no debugging interface is served", "use kubectl kube-queue why and tree", []string{"false"}},
		{controller, "enableVisibilityServer", nil, "there is no aggregated API", "use kubectl kube-queue why and list", []string{"true", "false"}},
		{controller, "strictDequeueMode", nil, "no scheduler confirms an admission", "use an admission check, whose controller asks the scheduler", []string{"false"}},
		{controller, "queue-list", nil, "all queues are served", "set spec.stop: Hold of the Queues that must not be served", []string{""}},
		{controller, "default-queue-policy", nil, "the flag had no effect", "set the value controller.policy of the chart if the policy is intended", []string{""}},
		{controller, "feature-gates", nil, "the features are others", "nothing: what the gates enabled is always available, or has no equivalent", []string{""}},
		{controller, "config", nil, "the file has another format", "add the ConfigMap with the file to the input", []string{""}},
		{controller, "PAI_ENV", nil, "names of units and annotations have one form", "nothing", []string{"", "false"}},
		{controller, "TestENV", nil, "the variable has no counterpart", "nothing", []string{"", "false"}},
		{controller, "SmallTaskAcclerate", nil, "the variable has no counterpart", "nothing", []string{"", "false"}},
		{extensions, "enabled-extensions", enabled, "", "", nil},
		{extensions, "manage-all-jobs", func(s *settingContext) {
			if s.isTrue() {
				s.c.result.Step("Label each namespace whose jobs are all queued, with or without a mark: kubectl label namespace NAME kube-queue/managed=true. The flag --manage-all-jobs does this for all namespaces.")
			}
		}, "", "", nil},
		{extensions, "enable-pod-reclaim", nil, "a job is admitted and evicted as a whole, unless it may start with fewer pods", "set the annotation kube-queue/min-count on jobs that may start with fewer pods", []string{"false"}},
		{extensions, "enable-reservation", nil, "no Reservation of the koord-scheduler is created", "use an admission check", []string{"false"}},
		{extensions, "enable-network-aware", nil, "kube-queue does not place pods", "use the topology features of the scheduler", []string{"false"}},
		{extensions, "feature-gates", nil, "the features are others", "nothing: what the gates enabled is always available, or has no equivalent", []string{""}},
		{extensions, "config", nil, "the file has another format", "set spec.podsReadyTimeout of the Queues to its runningTimeout", []string{""}},
		{extensions, "PAI_ENV", nil, "names of units and annotations have one form", "nothing", []string{"", "false"}},
	}
}

func seconds(field string) func(*settingContext) {
	return func(s *settingContext) {
		number, err := strconv.ParseInt(s.value, 10, 32)
		if err != nil || number < 1 {
			s.fault("%q is no number of seconds from 1", s.value)
			return
		}
		s.c.result.SetValue(s.value+"s", "controller", "config", "backoff", field)
	}
}

func mode(value string) func(*settingContext) {
	return func(s *settingContext) {
		if s.value == "" || !s.isTrue() {
			return
		}
		s.c.result.SetValue(true, "controller", value)
		modes := s.c.result.Values["controller"].(map[string]any)
		if modes["strictPriority"] == true && modes["strictConsistency"] == true {
			s.c.result.Step("Both StrictPriority and StrictConsistency are set: the policy is Block, and the front unit is tried again at once when quota is freed. The former queue contradicts itself here.")
		}
	}
}

// backend converts the quota backend. The former queue compares resourceQuota case-sensitively; kube-queue accepts
// any case.
func backend(s *settingContext) {
	switch strings.ToLower(s.value) {
	case "", "elasticquota":
		s.c.result.SetValue("elasticquota", "controller", "queueGroupPlugin")
	case "elasticquotav2":
		s.c.result.SetValue("elasticquota", "controller", "queueGroupPlugin")
		s.c.usesQuotas = true
	case "resourcequota":
		s.c.result.SetValue("resourcequota", "controller", "queueGroupPlugin")
		s.c.result.Step("Every ResourceQuota of a namespace counts, and the pods outside the queue too. Check that those other than the one with the name of the namespace leave room for its jobs.")
	default:
		s.fault("the quota backend %q is unknown; set elasticquota, elasticquotav2 or resourceQuota", s.value)
	}
}

// enabled converts the list of kinds.
func enabled(s *settingContext) {
	kinds := []any{}
	for name := range strings.SplitSeq(s.value, ",") {
		name = strings.TrimSpace(name)
		known := slices.ContainsFunc(migration.JobKinds(), func(k migration.JobKind) bool { return k.Extension == name }) || name == "rayjobv1alpha1"
		switch {
		case name == "":
		case known:
			kinds = append(kinds, name)
		case name == "mpijob":
			kinds = append(kinds, "mpiv1")
			s.c.result.Step("MPIJobs are enabled as mpiv1, for kubeflow.org/v1. For MPIJobs of kubeflow.org/v2beta1, enable mpiv2beta1 instead.")
		default:
			s.find(fmt.Sprintf("jobs of the kind %q are not queued", name), "charge their pods to the quota with --count-unqueued-pods, or run them as Jobs")
		}
	}
	s.c.result.SetValue(kinds, "enabledExtensions")
}

// readDeployment converts the flags and variables of a program.
func (c *converter) readDeployment(d migration.Document) {
	name := program(d.Object.GetName())
	if name == "" {
		return
	}
	containers, _, err := unstructured.NestedSlice(d.Object.Object, "spec", "template", "spec", "containers")
	if err != nil {
		c.faults.Add(d, "%v", err)
		return
	}
	for _, element := range containers {
		container, is := element.(map[string]any)
		if !is {
			c.faults.Add(d, "a container is not an object")
			continue
		}
		var words []string
		for _, list := range []string{"command", "args"} {
			more, _, err := unstructured.NestedStringSlice(container, list)
			if err != nil {
				c.faults.Add(d, "%s: %v", list, err)
			}
			words = append(words, more...)
		}
		c.readFlags(d, name, withoutShell(words))
		if container["envFrom"] != nil {
			c.result.Find(d.Name(), "envFrom", "the values are in other objects", "set the values of the chart by hand")
		}
		variables, _, err := unstructured.NestedSlice(container, "env")
		if err != nil {
			c.faults.Add(d, "env: %v", err)
		}
		for _, element := range variables {
			variable, _ := element.(map[string]any)
			key, _ := variable["name"].(string)
			value, isText := variable["value"].(string)
			if !isText && variable["valueFrom"] != nil && !slices.Contains(ofTheProgram, key) {
				c.result.Find(d.Name(), "env: "+key, "the value is in another object", "set the value of the chart by hand")
				continue
			}
			c.set(d, name, "env: "+key, key, value)
		}
	}
	if replicas, has, _ := unstructured.NestedInt64(d.Object.Object, "spec", "replicas"); has && replicas == 0 && name == extensions {
		c.result.Find(d.Name(), "spec.replicas", "one program queues all kinds, so a kind is not switched off by scaling a Deployment to 0", "leave the kind out of the values enabledExtensions and annotationExtensions of the chart")
	}
}

// withoutShell replaces the script of a shell, as in sh -c, by its words.
func withoutShell(words []string) []string {
	at := slices.IndexFunc(words, func(word string) bool { return slices.Contains([]string{"-c", "-ec", "-lc"}, word) })
	if at < 0 || at+1 == len(words) {
		return words
	}
	return strings.Fields(strings.ReplaceAll(words[at+1], "\\\n", " ")) // the following words are arguments of the script
}

// readFlags reads flags in both forms: --name=value and --name value.
func (c *converter) readFlags(d migration.Document, name string, words []string) {
	for i := 0; i < len(words); i++ {
		flag := strings.TrimLeft(words[i], "-")
		if flag == words[i] {
			continue // the program, or an argument
		}
		key, value, has := strings.Cut(flag, "=")
		if !has {
			if i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				i++
				value = words[i]
			} else {
				value = "true"
			}
		}
		c.set(d, name, "--"+key, key, strings.Trim(value, `"'`))
	}
}

// set converts one flag or variable.
func (c *converter) set(d migration.Document, program, field, key, value string) {
	if slices.Contains(ofTheProgram, key) || slices.Contains(ofTheProgram, strings.ToLower(key)) {
		return
	}
	context := &settingContext{c: c, document: d, field: field, value: value}
	list := settings()
	at := slices.IndexFunc(list, func(s setting) bool { return s.program == program && s.name == key })
	switch {
	case at < 0:
		context.find("the setting is unknown and is not converted", "see the settings of kube-queue")
	case list[at].convert != nil:
		list[at].convert(context)
	case !slices.Contains(list[at].harmless, value):
		context.find(list[at].why, list[at].instead)
	}
}
