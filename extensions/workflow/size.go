package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/resources"
)

const (
	// maxSize limits the text of the annotation. The maximum of 64 resources in a unit
	// takes less.
	maxSize = 8 << 10
	// format describes the value of the annotation.
	format = `a map of resources to quantities, for example "{cpu: 5, memory: 5Gi}"`

	unsized = "the requests of the Workflow are unknown; set annotation " + wellknown.MinResourcesAnnotation + " to " + format
)

// parseSize reads the annotation. Each error names the annotation and its format.
func parseSize(text string) (corev1.ResourceList, error) {
	size, err := readSize(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w; write %s", wellknown.MinResourcesAnnotation, err, format)
	}
	return size, nil
}

func readSize(text string) (corev1.ResourceList, error) {
	if len(text) > maxSize {
		return nil, fmt.Errorf("the value is longer than %d characters", maxSize)
	}
	entries, err := readMap(text)
	if err != nil {
		return nil, err
	}
	size := make(corev1.ResourceList, len(entries))
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		quantity, err := readEntry(name, entries[name])
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		size[corev1.ResourceName(name)] = *quantity
	}
	if faults != nil {
		return nil, errors.New(strings.Join(faults, "; "))
	}
	return size, nil
}

// readMap reads a map without duplicate keys.
func readMap(text string) (map[string]any, error) {
	data := []byte(text)
	if !json.Valid(data) {
		// The YAML parser does not accept some JSON, such as an escaped slash.
		var err error
		if data, err = yaml.YAMLToJSONStrict(data); err != nil {
			return nil, unreadable(err)
		}
	}
	var value any
	faults, err := kjson.UnmarshalStrict(data, &value)
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, unreadable(err)
	}
	entries, isMap := value.(map[string]any)
	if !isMap {
		return nil, errors.New("the value is not a map")
	}
	return entries, nil
}

// unreadable returns the error on one line; some of these errors have many.
func unreadable(err error) error {
	return fmt.Errorf("the value cannot be parsed: %s", strings.Join(strings.Fields(err.Error()), " "))
}

func readEntry(name string, value any) (*resource.Quantity, error) {
	if !isResource(name) {
		return nil, fmt.Errorf("%q is not a resource that a pod can request, such as cpu, memory or nvidia.com/gpu", name)
	}
	var text string
	switch v := value.(type) {
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		text = v
	default:
		return nil, fmt.Errorf("the quantity of %s must be a number or a string", name)
	}
	quantity, err := resources.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := resources.RequestValue(name, quantity); err != nil {
		return nil, err
	}
	return &quantity, nil
}

// isResource reports whether a container can use the name in its requests.
func isResource(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	if page, huge := strings.CutPrefix(name, corev1.ResourceHugePagesPrefix); huge {
		size, err := resources.Parse(page)
		return err == nil && size.Sign() > 0
	}
	// Keys of quotas, such as requests.nvidia.com/gpu, look like names of resources.
	return strings.Contains(name, "/") && !strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(name)) == 0
}
