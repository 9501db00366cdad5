package resourcequota

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/harness"
)

// place is a namespace of the storm.
//
// A namespace is still if all actions have had their effect: each job that the test has ended is over, each released
// job has all its pods, nothing is being deleted, and no waiting job would fit. Then nothing is released until the
// test frees quota or submits a job.
//
// The test creates unmanaged pods, if they fit, and ends jobs only when the namespace is still. This follows from the
// guarantee under test: the pods of a released job fit unless other pods are created between its release and its own
// pods. Jobs are submitted, and unmanaged pods are deleted, at any time.
type place struct {
	*harness.Env
	t      testing.TB
	jobs   []*drawn
	chance *rand.Rand
	guests map[string]*guest
	seen   view

	// came and refused count unmanaged pods, still counts still moments.
	came, refused, still int
}

// guest is an unmanaged pod. It ends or is deleted when its time is over.
type guest struct {
	goes  time.Time
	ends  bool
	going bool
}

func (p *place) count(is func(*drawn) bool) int {
	n := 0
	for _, j := range p.jobs {
		if is(j) {
			n++
		}
	}
	return n
}

// turn reads the state of the namespace and performs due actions.
func (p *place) turn() {
	p.seen = look(p.t, p.Env)
	if !p.ready() {
		return
	}
	p.follow()
	if p.stirs() == "" {
		p.still++
		p.invite()
		p.finishSome()
	}
	p.dismiss()
	p.submit()
}

// ready reports whether the quotas have a status.
func (p *place) ready() bool {
	return len(p.seen.quotas) > 0 && !slices.ContainsFunc(p.seen.quotas, behind)
}

// follow records the state of the jobs. It deletes ended jobs, since some quotas count their pods
// until they are deleted.
func (p *place) follow() {
	for _, j := range p.jobs {
		unit := p.seen.units[j.name]
		switch {
		case !j.submitted || j.ended || unit == nil:
		case unit.Status.Phase.Ended():
			j.ended = true
			if want := map[bool]string{true: "Failed", false: "Succeeded"}[j.fails]; string(unit.Status.Phase) != want || !j.reported {
				p.t.Errorf("%s/%s ended as %s, want %s; instructed to end: %t", p.Namespace, j.name, unit.Status.Phase, want, j.reported)
			}
			p.Delete(resources[j.kind], j.name)
		case j.whole.IsZero() && holds(unit) && !p.toCome(j):
			j.whole = time.Now()
		}
	}
}

// toCome reports whether the job is released but not all of its pods have been created.
func (p *place) toCome(j *drawn) bool {
	unit := p.seen.units[j.name]
	if unit == nil || !holds(unit) || !j.whole.IsZero() {
		return false
	}
	_, want := ofUnit(unit)
	return len(p.seen.of(j.name)) < want
}

// stirs returns why the namespace is not still, or "".
func (p *place) stirs() string {
	held := p.seen.held()
	for _, j := range p.jobs {
		unit, has := p.seen.units[j.name], p.seen.of(j.name)
		switch {
		case !j.submitted:
		case j.ended && unit != nil:
			return fmt.Sprintf("%s has ended, and its unit is there", j.name)
		case j.ended && len(has) > 0:
			return fmt.Sprintf("%s has ended, and pod %s is there: %s, deleted at %v, of %v", j.name, has[0].Name, has[0].Status.Phase, has[0].DeletionTimestamp, has[0].OwnerReferences)
		case j.ended:
		case unit == nil:
			return fmt.Sprintf("%s has no unit", j.name)
		case j.reported:
			return fmt.Sprintf("%s was instructed to end, and its unit is %s", j.name, unit.Status.Phase)
		case holds(unit) && j.whole.IsZero():
			return fmt.Sprintf("%s is %s with %d pods", j.name, unit.Status.Phase, len(has))
		case !holds(unit):
			if asked, _ := ofUnit(unit); p.seen.room(asked, held) {
				return fmt.Sprintf("there is room for %s", j.name)
			}
		}
	}
	for i := range p.seen.pods {
		pod := &p.seen.pods[i]
		if g := p.guests[pod.Name]; pod.DeletionTimestamp != nil || g != nil && g.going && !ended(pod) {
			return fmt.Sprintf("pod %s is going: %s, deleted at %v", pod.Name, pod.Status.Phase, pod.DeletionTimestamp)
		}
	}
	return ""
}

// manyGuests is the maximum number of unmanaged pods, and their number before the first job.
// Without a maximum they would use all remaining quota.
const manyGuests = 6

// invite creates unmanaged pods that fit.
func (p *place) invite() {
	most := manyGuests - p.guestsThere()
	if p.came > 0 {
		most = min(most, p.chance.IntN(3))
	}
	held := p.seen.held()
	for range most {
		size := corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(50+10*p.chance.IntN(50)), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(1+p.chance.IntN(8))<<26, resource.BinarySI),
		}
		g := &guest{goes: time.Now().Add(time.Duration(3000+p.chance.IntN(12000)) * time.Millisecond), ends: p.chance.IntN(2) == 0}
		if asked := weigh(size, size); p.seen.room(asked, held) && p.seen.free(asked) {
			p.receive(g, size)
			held.add(asked, 1)
		}
	}
}

func (p *place) guestsThere() int {
	n := 0
	for i := range p.seen.pods {
		if p.guests[p.seen.pods[i].Name] != nil {
			n++
		}
	}
	return n
}

func (p *place) receive(g *guest, size corev1.ResourceList) {
	name := fmt.Sprintf("guest-%03d", p.came+p.refused)
	_, err := p.Kube.CoreV1().Pods(p.Namespace).Create(p.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox",
			Resources: corev1.ResourceRequirements{Requests: size, Limits: size}}}},
	}, metav1.CreateOptions{})
	switch {
	case err == nil:
		p.came++
		p.guests[name] = g
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		p.refused++ // the quota's status lags behind
	default:
		p.t.Fatal(err)
	}
}

// dismiss ends or deletes the unmanaged pods whose time is over, and later deletes the ended ones.
func (p *place) dismiss() {
	for i := range p.seen.pods {
		pod := &p.seen.pods[i]
		g := p.guests[pod.Name]
		switch {
		case g == nil || pod.DeletionTimestamp != nil:
		case g.going && !ended(pod), !g.going && time.Now().Before(g.goes), ended(pod) && p.chance.IntN(10) > 0:
		case g.ends && !g.going:
			g.going = true
			p.Patch(harness.Pods, pod.Name, harness.EndNow)
		default:
			g.going = true
			p.Delete(harness.Pods, pod.Name)
		}
	}
}

// finishSome ends several jobs that have run their time, all at once, because the next still moment may be much
// later.
func (p *place) finishSome() {
	most := 1 + p.chance.IntN(3)
	for _, j := range p.jobs {
		if most > 0 && !j.whole.IsZero() && !j.reported && time.Since(j.whole) >= j.runs {
			most--
			j.reported = true
			p.Finish(resources[j.kind], j.name)
		}
	}
}

// submit creates more jobs: first many together, then a few at a time.
func (p *place) submit() {
	most := 0
	switch {
	case p.came == 0: // the first unmanaged pods come first
	case !p.jobs[0].submitted:
		most = 1 + len(p.jobs)/2
	case p.chance.IntN(8) == 0:
		most = 1 + p.chance.IntN(3)
	}
	var manifests strings.Builder
	for _, j := range p.jobs {
		if most > 0 && !j.submitted {
			most--
			j.submitted = true
			manifests.WriteString(j.manifest)
		}
	}
	if manifests.Len() > 0 {
		p.Apply(manifests.String())
	}
}
