package services

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/podrunner"
)

// pods are the pods of a Deployment that serves a webhook.
type pods struct {
	webhook
	folder string
}

func newPods(t *testing.T) *pods {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	p := &pods{webhook: newWebhook(t, "pods"), folder: t.TempDir()}
	programs := t.TempDir()
	must(t, os.Symlink(self, filepath.Join(programs, serverName)))
	runner, err := podrunner.New(podrunner.Options{Cluster: cluster, Programs: programs, Folder: p.folder})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	apply(t, fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: pods, namespace: %[1]s}
spec: {selector: {app: pods}, ports: [{port: 443, targetPort: webhook}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pods, namespace: %[1]s}
data: {certificate: %[2]q}
`, clustertest.Namespace, string(p.certificate)+string(p.key)))
	return p
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: pods, namespace: kube-queue}
spec:
  replicas: 2
  selector: {matchLabels: {app: pods}}
  template:
    metadata:
      labels: {app: pods}
      annotations: {` + podrunner.Annotation + `: ` + podrunner.Own + `}
    spec:
      serviceAccountName: default
      containers:
      - name: server
        image: ` + serverName + `:v1
        args: ["--webhook-bind-address=:9443", "--certificate=/etc/serving/certificate"]
        env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        ports: [{name: health, containerPort: 8081}, {name: webhook, containerPort: 9443}]
        readinessProbe: {httpGet: {path: /, port: health}}
        volumeMounts: [{name: serving, mountPath: /etc/serving}]
      volumes: [{name: serving, configMap: {name: pods}}]
`

func (p *pods) check(t *testing.T) {
	apply(t, deployment)
	_, err := cluster.Kubectl(t.Context(), "-n", clustertest.Namespace, "rollout", "status", "deployment/pods", "--timeout="+patience.String())
	must(t, err)
	names := p.names(t)
	if len(names) != 2 {
		t.Fatalf("got pods %v, want two", names)
	}
	p.expectBy(t, names...)
	p.setReady(t, names[0], false)
	p.expectBy(t, names[1])
	p.setReady(t, names[1], false)
	p.expectRefused(t, "Service kube-queue/pods, port 443: it has no ready endpoint")
	p.setReady(t, names[0], true)
	p.setReady(t, names[1], true)
	p.expectBy(t, names...)
}

func (p *pods) names(t *testing.T) []string {
	t.Helper()
	list, err := client(t).CoreV1().Pods(clustertest.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=pods"})
	must(t, err)
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

func (p *pods) setReady(t *testing.T, pod string, ready bool) {
	t.Helper()
	file := filepath.Join(p.folder, pod, notReady)
	if ready {
		must(t, os.Remove(file))
	} else {
		must(t, os.WriteFile(file, nil, 0o600))
	}
}
