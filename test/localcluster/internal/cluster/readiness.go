package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// readinessJob is the name of the jobs that check whether an operator acts.
const readinessJob = "localcluster-readiness"

// probe is a minimal suspended job with that name. It creates no pod.
type probe struct {
	apiVersion, kind, plural, namespace string
	// spec is YAML on one line. Without it, the operator creates the job.
	spec string
	// field is a status path that has this value once the operator has suspended the job. Without it, the job gets
	// the condition Suspended.
	field, value string
}

func (p probe) path() string {
	return "/apis/" + p.apiVersion + "/namespaces/" + p.namespace + "/" + p.plural
}

// actsOn returns the ready check of an operator. It creates the jobs, and it passes and deletes them once the
// operator has acted on all of them. Health endpoints are not enough, because they respond before controllers run.
func (s *setup) actsOn(name string, o operator) check {
	webhooksAnswer := healthy("http://" + s.ports.address(name+"-health") + "/readyz")
	submitted := false
	return func(ctx context.Context) error {
		if !submitted {
			if hasWebhooks(o) {
				if err := webhooksAnswer(ctx); err != nil {
					return err
				}
			}
			if err := s.submit(ctx, o); err != nil {
				return err
			}
			submitted = true
		}
		for _, p := range o.jobs {
			if err := s.handled(ctx, p); err != nil {
				return err
			}
		}
		for _, p := range o.jobs {
			if p.spec == "" {
				continue
			}
			if err := s.api.Delete(ctx, p.path()+"/"+readinessJob); err != nil {
				return err
			}
		}
		return nil
	}
}

// submit creates the jobs of an operator. Jobs of an earlier attempt may exist.
func (s *setup) submit(ctx context.Context, o operator) error {
	if o.beforeJobs != nil {
		if err := o.beforeJobs(ctx, s); err != nil {
			return err
		}
	}
	for _, p := range o.jobs {
		if p.spec == "" {
			continue
		}
		job := fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", p.apiVersion, p.kind, readinessJob, p.spec)
		err := s.api.CreateYAML(ctx, p.path(), job)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create a %s: %w", p.kind, err)
		}
	}
	return nil
}

func (s *setup) handled(ctx context.Context, p probe) error {
	var found struct{ Status object }
	if err := s.api.Get(ctx, p.path()+"/"+readinessJob, &found); err != nil {
		return err
	}
	if !p.isSuspended(found.Status) {
		return fmt.Errorf("a suspended %s is not handled yet", p.kind)
	}
	return nil
}

func (p probe) isSuspended(status object) bool {
	if p.field != "" {
		value, _, _ := unstructured.NestedString(status, strings.Split(p.field, ".")...)
		return value == p.value
	}
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(object)
		return condition["type"] == "Suspended" && condition["status"] == "True"
	})
}
