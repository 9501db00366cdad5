package pods

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/examples"
	"kube-queue.dev/kube-queue/test/harness"
)

const (
	// patience is the maximum time until all pods of all examples exist.
	patience = 3 * time.Minute
	// quiet is how long no other pod may be created after that.
	quiet = 10 * time.Second
)

// comparison compares the examples of one operator, each in its own namespace.
type comparison struct {
	t          *testing.T
	whole      *harness.Env
	peaks      *peaks
	collection *examples.Collection
	submitted  []examples.Submitted
}

func compare(t *testing.T, operator string) {
	suite := harness.ForTest(t, clustertest.Options{Nodes: 2, Operators: []string{operator}, PodRunTime: time.Hour})
	c := &comparison{t: t, whole: suite.Env(t, "default"), collection: read(t, suite, operator)}
	suite.Both(t, strings.Join(registry.NamesOf(registry.All()), ","))
	c.whole.TreeOf(`{name: all, namespaces: ["*"], max: {cpu: 1M, memory: 1Pi}}`)
	c.peaks = watchPods(t, c.whole.Kube)
	c.submit()
	c.expectSame()
}

func read(t *testing.T, suite *harness.Suite, operator string) *examples.Collection {
	t.Helper()
	sources := examples.Sources()
	source := sources[slices.IndexFunc(sources, func(s examples.Source) bool { return s.Operator == operator })]
	module, err := suite.OperatorModule(t.Context(), operator)
	harness.Must(t, err)
	collection, err := examples.Read(source, module)
	harness.Must(t, err)
	return collection
}

// submit creates all examples after the objects that their pods need.
func (c *comparison) submit() {
	c.t.Helper()
	namespaces := make([]string, len(c.collection.Examples))
	for i := range c.collection.Examples {
		namespaces[i] = fmt.Sprintf("example-%d", i+1)
		c.whole.EnsureNamespace(namespaces[i])
	}
	for i := range c.collection.Examples {
		example := &c.collection.Examples[i]
		c.prepare(example, namespaces[i])
		submitted, err := examples.Submit(c.t.Context(), c.whole, example, namespaces[i])
		harness.Must(c.t, err)
		c.submitted = append(c.submitted, submitted)
	}
}

// prepare creates the ServiceAccounts of the example's pods. Without them the API server rejects
// the pods.
func (c *comparison) prepare(example *examples.Example, namespace string) {
	c.t.Helper()
	accounts := c.whole.Kube.CoreV1().ServiceAccounts(namespace)
	if example.Object != nil {
		for _, name := range accountsOf(example.Object.Object) {
			_, err := accounts.Create(c.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsInvalid(err) {
				c.t.Fatal(err)
			}
		}
	}
}

// accountsOf finds the names of ServiceAccounts anywhere in an object.
func accountsOf(value any) []string {
	var names []string
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if name, isText := inner.(string); isText && (key == "serviceAccount" || key == "serviceAccountName") {
				names = append(names, name)
			}
			names = append(names, accountsOf(inner)...)
		}
	case []any:
		for _, inner := range v {
			names = append(names, accountsOf(inner)...)
		}
	}
	return names
}

// expectSame waits until all pods exist, and then checks that no other pod is created.
func (c *comparison) expectSame() {
	c.t.Helper()
	var wrong []string
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	end := time.NewTimer(patience)
	defer end.Stop()
	right := time.Now()
	for time.Since(right) < quiet {
		select {
		case <-tick.C:
		case <-end.C:
			c.t.Errorf("the pods were not for %v as their units request:\n%s", quiet, strings.Join(wrong, "\n"))
			return
		}
		if wrong = c.differences(); len(wrong) > 0 {
			right = time.Now()
		}
	}
}

// differences returns the examples whose pods do not, or not yet, equal the request.
func (c *comparison) differences() []string {
	c.t.Helper()
	units, err := examples.Units(c.t.Context(), c.whole)
	harness.Must(c.t, err)
	var wrong []string
	for _, submitted := range c.submitted {
		if why := c.difference(submitted, units); why != "" {
			wrong = append(wrong, fmt.Sprintf("%s (namespace %s): %s", submitted.File, submitted.Namespace, why))
		}
	}
	return wrong
}

// difference returns the difference of an example, or "". It skips examples that the API server rejects without the
// operator, and examples that the operator's webhook, which is called first, cannot parse.
func (c *comparison) difference(submitted examples.Submitted, units map[types.UID]*v1alpha1.QueueUnit) string {
	outcome, known := examples.OutcomeOf(submitted, units, nil)
	if !known {
		return "it has no unit and no message"
	}
	real, want := c.peaks.of(submitted.Namespace), examples.Demand(0, nil)
	switch {
	case outcome.Queued():
		want = examples.Demand(outcome.Pods(), outcome.Unit.Spec.Resource)
	case outcome.Refused != "" && (!strings.Contains(outcome.Refused, "admission webhook") || strings.Contains(outcome.Refused, "cannot unmarshal")):
		return ""
	case outcome.Refused != "":
		real = outcome.Refused
	}
	if difference, differs := examples.DifferenceOf(c.collection.Operator, submitted.File); differs {
		want = difference.Real
	}
	if real != want {
		return fmt.Sprintf("the pods are %q, want %q", real, want)
	}
	return ""
}
