package lenient

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Report is called with the result of each list and watch, which may be nil.
type Report func(error)

// Reported returns a Lister that reports its results.
func Reported(source Lister, report Report) Lister { return reportedLister{source, report} }

type reportedLister struct {
	Lister
	report Report
}

func (r reportedLister) Each(ctx context.Context, namespace string, opts metav1.ListOptions, each func(Object) error) (metav1.ListMeta, error) {
	meta, err := r.Lister.Each(ctx, namespace, opts, each)
	r.report(err)
	return meta, err
}

func (r reportedLister) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	watched, err := r.Lister.Watch(ctx, namespace, opts)
	r.report(err)
	return watched, err
}

// ReportedSource returns a Source that reports its results.
func ReportedSource(source Source, report Report) Source { return reportedSource{source, report} }

type reportedSource struct {
	Source
	report Report
}

func (r reportedSource) List(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := r.Source.List(ctx, namespace, opts)
	r.report(err)
	return list, err
}

func (r reportedSource) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	watched, err := r.Source.Watch(ctx, namespace, opts)
	r.report(err)
	return watched, err
}
