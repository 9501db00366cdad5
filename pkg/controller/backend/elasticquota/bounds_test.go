package elasticquota

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// crowded returns a tree with this many teams. Their units use and request cpu, which the root names, and this many
// resources that no node names, with names of maximum length.
func crowded(t *testing.T, teams, names int) *writing {
	w := newWriting(t)
	var children []string
	for i := range teams {
		children = append(children, fmt.Sprintf("{name: team%d, namespaces: [n%d]}", i, i))
	}
	w.forest.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 7, `{name: root, max: {cpu: 1000}, children: [`+strings.Join(children, ", ")+`]}`))
	for i := range teams {
		group, refusal := w.forest.backend.Place(fmt.Sprint("n", i), "")
		if refusal != nil {
			t.Fatal(refusal)
		}
		request := w.vector("cpu", 1000, quota.JobsResource, 1)
		for j := range names {
			request = request.With(w.names.ID(fmt.Sprintf("%s/%d-%d", strings.Repeat("x", 300), i, j)), 1)
		}
		group.Charge(&quota.Charge{Demand: quota.Demand{Preemptible: true, Requests: request}})
	}
	return w
}

func TestTheStatusStaysSmallWhateverUnitsName(t *testing.T) {
	for _, c := range []struct {
		teams, names int
		// team and root are the numbers of names other than cpu that are listed for a team and for the root.
		team, root int
	}{
		{teams: 1, names: 16, team: 16, root: 16},
		{teams: 1, names: 1000, team: 16, root: 16},
		{teams: 3, names: 64, team: 16, root: 16},
		{teams: 20, names: 64, team: 2, root: 2},
		{teams: 500, names: 64, team: 0, root: 0},
	} {
		t.Run(fmt.Sprint(c.teams, " teams of ", c.names, " names"), func(t *testing.T) {
			w := crowded(t, c.teams, c.names)
			pending := map[quota.NodeID]resources.Vector{1: w.vector("cpu", 500)}
			w.shows(w.PrepareStatus(pending), 1)
			_, status := w.last()
			if len(status.Nodes) != c.teams+1 {
				t.Fatalf("%d nodes", len(status.Nodes))
			}
			for i, node := range status.Nodes {
				listed, all := c.team, c.names
				if i == 0 {
					listed, all = c.root, c.names*c.teams
				}
				if len(node.Used) != listed+1 || len(node.Request) != listed+1 || int(node.OmittedResources) != all-listed {
					t.Fatalf("%s lists %d used and %d requested, and omits %d; want %d others and cpu, and %d", node.Path, len(node.Used), len(node.Request), node.OmittedResources, listed, all-listed)
				}
				if cpu := node.Used[corev1.ResourceCPU]; cpu.IsZero() {
					t.Errorf("%s shows no cpu", node.Path)
				}
			}
			if cpu := status.Nodes[1].Request[corev1.ResourceCPU]; cpu.String() != "1500m" {
				t.Errorf("team0 requests %s cpu", cpu.String())
			}
			if size, limit := len(w.written[0]), unlimitedSize+200*(c.teams+1)+1000; size > limit {
				t.Errorf("the status has %d bytes, want at most %d", size, limit)
			}
		})
	}
}

func TestWhoseResourcesAreListedAlreadyStaysListed(t *testing.T) {
	w := crowded(t, 2, 3)
	early, _ := w.forest.backend.Place("n0", "")
	late := w.vector()
	for i := range 100 {
		late = late.With(w.names.ID(fmt.Sprint("aaa-", i)), 1)
	}
	early.Charge(&quota.Charge{Pods: late, Unqueued: true})
	w.shows(w.PrepareStatus(nil), 1)
	_, status := w.last()
	var listed []string
	for name := range status.Nodes[0].Used {
		if strings.HasPrefix(string(name), "xxx") {
			listed = append(listed, strings.TrimLeft(string(name), "x"))
		}
	}
	slices.Sort(listed)
	if want := []string{"/0-0", "/0-1", "/0-2", "/1-0", "/1-1", "/1-2"}; !slices.Equal(listed, want) {
		t.Errorf("listed are %q, want %q", listed, want)
	}
	if unqueued := status.Nodes[0].Unqueued; len(unqueued) != quota.MostUnlimited-6 {
		t.Errorf("%d resources of pods outside of the queue are listed", len(unqueued))
	}
}
