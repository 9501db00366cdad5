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
// Its moments are still ones and others. A moment is still when nothing that was done
// has yet to show its effect: every job that was instructed to end has, every released one
// has all its pods, nothing is being deleted, and no job that waits would fit. So
// nothing is released until the test itself has room freed, or submits a job.
//
// In still moments alone the test has unmanaged pods created, where there is room for
// them, and then jobs instructed to end. That is what is promised, and not more: a released
// job finds its room unless somebody else takes it after its release and before its
// own pods are there. Who creates pods at other times may be in that between, with any
// queue. Jobs come, and unmanaged pods go, at any moment.
type place struct {
	*harness.Env
	t      testing.TB
	jobs   []*drawn
	chance *rand.Rand
	guests map[string]*guest
	seen   view

	// came and refused are unmanaged pods; still are moments.
	came, refused, still int
}

// guest is an unmanaged pod, which goes when its time is over: it ends, or is deleted.
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

// turn looks and does what is due.
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

// ready once its quotas have a status.
func (p *place) ready() bool {
	return len(p.seen.quotas) > 0 && !slices.ContainsFunc(p.seen.quotas, behind)
}

// follow notes what has become of the jobs. Those that have ended are deleted, since
// some quotas count their pods as long as these are there.
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

// toCome: the job is released and has not had all its pods yet.
func (p *place) toCome(j *drawn) bool {
	unit := p.seen.units[j.name]
	if unit == nil || !holds(unit) || !j.whole.IsZero() {
		return false
	}
	_, want := ofUnit(unit)
	return len(p.seen.of(j.name)) < want
}

// stirs reports what keeps a moment from being still; nothing in a still one.
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

// manyGuests are as many unmanaged pods as there may be at a time, and as there are
// before the first job: else they would take all that jobs leave.
const manyGuests = 6

// invite has unmanaged pods come, as far as there is room.
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
		p.refused++ // the quota's status is behind
	default:
		p.t.Fatal(err)
	}
}

// dismiss has the unmanaged pods go whose time is over, and removes those that have
// ended some time later.
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

// finishSome lets some of the jobs end that have run their time: all at once, for the next
// moment to do so is far.
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

// submit has more jobs come: a good part at once, and then a few at a time.
func (p *place) submit() {
	most := 0
	switch {
	case p.came == 0: // the unmanaged pods of the opening come first
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
