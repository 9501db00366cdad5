package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

// unitObject is a unit with all its fields.
type unitObject struct {
	unit   units.Unit
	object unstructured.Unstructured
}

// readUnits reads the selected units with all their fields, in order.
func (c *cluster) readUnits(ctx context.Context, o *listOptions, namespace string, seen *units.Seen) (list []unitObject, err error) {
	if _, err = c.objectPages(ctx, namespace, o.selected(), func(items []unstructured.Unstructured) error {
		for i := range items {
			u, err := read(&items[i])
			if err != nil {
				return err
			}
			if seen.Add(u); o.selects(u) {
				list = append(list, unitObject{*u, items[i]})
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b unitObject) int { return units.Order(o.sort).Compare(&a.unit, &b.unit) })
	if o.by != nil {
		slices.SortStableFunc(list, func(a, b unitObject) int {
			return compareValues(o.by.value(a.object.Object), o.by.value(b.object.Object))
		})
	}
	return list, nil
}

// printUnits writes units from readUnits.
func (c *cluster) printUnits(ctx context.Context, list []unitObject, o *listOptions, namespace string, seen *units.Seen) error {
	if o.printer == nil {
		shown := make([]units.Unit, len(list))
		for i := range list {
			shown[i] = list[i].unit
		}
		return c.showUnits(ctx, shown, o, namespace, seen)
	}
	if o.job != nil && len(list) == 0 {
		return c.nothing(ctx, o, namespace, seen)
	}
	objects := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, len(list)),
		Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}}}
	for i := range list {
		objects.Items[i] = list[i].object
	}
	if o.format != formatName {
		return o.object(c.Streams.Out, objects)
	}
	for i := range objects.Items {
		if err := o.object(c.Streams.Out, &objects.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// objectPages calls visit with each page of complete units, and returns the version of the list.
func (c *cluster) objectPages(ctx context.Context, namespace string, selected metav1.ListOptions, visit func([]unstructured.Unstructured) error) (string, error) {
	for selected.Limit = access.PageSize; ; {
		page, err := c.Dynamic.Resource(access.UnitResource).Namespace(namespace).List(ctx, selected)
		if err != nil {
			return "", err
		}
		if err := visit(page.Items); err != nil {
			return "", err
		}
		if selected.Continue = page.GetContinue(); selected.Continue == "" {
			return page.GetResourceVersion(), nil
		}
	}
}

// read converts an object to a Unit.
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
