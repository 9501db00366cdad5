package command

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the samples of the reference")

// samples are in the reference of the plugin.
const samples = "../../../hack/pluginreference/samples"

const ofKueue = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: research, namespace: research}
spec: {clusterQueue: research}
`

func TestTheReferenceShowsWhatEachCommandPrints(t *testing.T) {
	files := strings.NewReplacer("tree.yaml", file(t, roomyTree), "kueue.yaml", file(t, ofKueue))
	for name, args := range map[string]string{
		"list": "list -A", "queue": "queue company-research", "tree": "tree", "why": "why job/train-c", "simulate": "simulate -f tree.yaml",
		"pause": "pause job/train-c", "unpause": "unpause job/train-c", "priority": "priority job/train-c 100",
		"stop": "stop company-research", "resume": "resume company-research", "version": "version", "convert": "convert -f kueue.yaml",
	} {
		a := newAPI(t, four)
		switch name {
		case "unpause":
			a.objects[unitsOf][0]["spec"].(map[string]any)["active"] = false
		case "version":
			a.add(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": controllerName, "namespace": "kube-queue"},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": "kube-queue-controller:0.2.0"}}}}}})
		case "resume":
			a.objects[queuesOf][0]["spec"] = map[string]any{"stop": "Hold"}
		}
		code, out, errs := a.run(strings.Fields(files.Replace(args))...)
		if code != 0 {
			t.Errorf("%s: exit status %d\n%s", args, code, errs)
			continue
		}
		out = strings.ReplaceAll(out, programVersion(), "0.2.0")
		sample := filepath.Join(samples, name+".txt")
		if *update {
			if err := os.WriteFile(sample, []byte(args+"\n"+out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if shown, err := os.ReadFile(sample); err != nil || string(shown) != args+"\n"+out {
			t.Errorf("the sample of %s differs from what it prints (%v); write it with -update, and run make generate\n%s", name, err, out)
		}
	}
}
