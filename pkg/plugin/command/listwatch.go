package command

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

// watchUnits writes the units, and then each one that changes.
func (c *cluster) watchUnits(ctx context.Context, o *listOptions, namespace string) error {
	show := &rows{cluster: c, options: o, known: map[string]string{}, shown: map[string]bool{}}
	for {
		version, err := c.objectPages(ctx, namespace, o.selected(), show.page)
		if err != nil {
			return err
		}
		expired, err := c.followUnits(ctx, c.Dynamic.Resource(access.UnitResource).Namespace(namespace).Watch, version, show)
		if err != nil || !expired {
			return err
		}
	}
}

// followUnits writes the units that change after a version, until the context ends. It reports whether the version has
// expired. The units must then be listed again.
func (c *cluster) followUnits(ctx context.Context, open func(context.Context, metav1.ListOptions) (watch.Interface, error), version string, show *rows) (expired bool, err error) {
	for {
		from := show.options.selected()
		from.ResourceVersion, from.AllowWatchBookmarks = version, true
		w, err := open(ctx, from)
		if err != nil {
			return isExpired(err), ignoreExpired(err)
		}
		for event := range w.ResultChan() {
			object, is := event.Object.(*unstructured.Unstructured)
			switch {
			case event.Type == watch.Error:
				w.Stop()
				err := apierrors.FromObject(event.Object)
				return isExpired(err), ignoreExpired(err)
			case !is:
			case event.Type == watch.Bookmark:
				version = object.GetResourceVersion()
			default:
				version = object.GetResourceVersion()
				if err := show.changed(ctx, object, event.Type == watch.Deleted); err != nil {
					w.Stop()
					return false, err
				}
			}
		}
		w.Stop()
		if ctx.Err() != nil || !c.Wait(ctx, rewatch) {
			return false, ctx.Err()
		}
	}
}

// rows writes units as they change. After a new list, it skips the versions that it has already written.
type rows struct {
	*cluster
	options *listOptions
	// known are the versions of the units, by UID.
	known map[string]string
	// shown are the UIDs of the units whose last state is selected.
	shown  map[string]bool
	begun  bool
	widths []int
}

func (r *rows) page(items []unstructured.Unstructured) error {
	var list []units.Unit
	for i := range items {
		if uid, version := string(items[i].GetUID()), items[i].GetResourceVersion(); r.known[uid] == version {
			continue
		} else {
			r.known[uid] = version
		}
		if r.options.isTable() {
			u, err := read(&items[i])
			if err != nil {
				return err
			}
			if r.options.selects(u) {
				r.shown[u.Metadata.UID] = true
				list = append(list, *u)
			}
		} else if err := r.print(&items[i]); err != nil {
			return err
		}
	}
	return r.table(list)
}

// changed writes a unit that has changed. A unit that is no longer selected is written one last time.
func (r *rows) changed(ctx context.Context, object *unstructured.Unstructured, deleted bool) error {
	if deleted && (r.options.labels != "" || r.options.fields != "") { // it may still exist, but no longer match
		current, err := r.Dynamic.Resource(access.UnitResource).Namespace(object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err == nil && current.GetUID() == object.GetUID() {
			object, deleted = current, false
		}
	}
	r.known[string(object.GetUID())] = object.GetResourceVersion()
	if deleted {
		delete(r.known, string(object.GetUID()))
	}
	if !r.options.isTable() {
		if deleted {
			return nil
		}
		return r.print(object)
	}
	u, err := read(object)
	if err != nil {
		return err
	}
	shown, selected := r.shown[u.Metadata.UID], r.options.selects(u)
	if delete(r.shown, u.Metadata.UID); selected && !deleted {
		r.shown[u.Metadata.UID] = true
	}
	if deleted {
		u.Status.Phase, u.Status.Reason = "Deleted", ""
	}
	if !shown && !selected {
		return nil
	}
	return r.table([]units.Unit{*u})
}

func (r *rows) print(object *unstructured.Unstructured) error {
	u, err := read(object)
	if err != nil || !r.options.selects(u) {
		return err
	}
	if printer, is := r.options.printer.(*columns); is {
		defer func() { printer.header = false }() // print titles only once
	}
	return r.options.object(r.Streams.Out, object)
}

func (r *rows) table(list []units.Unit) error {
	if len(list) == 0 {
		return nil
	}
	units.Sort(list, units.Order(r.options.sort))
	view := r.view(&r.options.output)
	view.Namespaces = r.options.all
	view.Header = view.Header && !r.begun
	view.Widths = &r.widths
	r.begun = true
	return render.Rows(r.Streams.Out, units.Singles(list), false, view)
}
