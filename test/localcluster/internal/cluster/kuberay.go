package cluster

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
	"kube-queue.dev/kube-queue/test/localcluster/internal/standin"
)

const (
	kuberay          = "kuberay"
	kuberayNamespace = "kuberay-system"
	kuberayModule    = "github.com/ray-project/kuberay/ray-operator"
)

// kuberayKinds are the kinds that the operator watches. It does not start unless all are served.
// RayCronJob is not included, because it is an alpha feature that is off by default.
var kuberayKinds = []string{"rayclusters", "rayjobs", "rayservices"}

func init() {
	component := build.Component{
		Name:    kuberay,
		Package: kuberayModule,
		Binary:  kuberay,
		LDFlags: "-s -w",
		Files:   []build.ModuleFiles{{Module: kuberayModule, Into: "crds"}},
	}
	for _, plural := range kuberayKinds {
		component.Files[0].Paths = append(component.Files[0].Paths, "config/crd/bases/"+kuberayCRDFile(plural))
	}
	operators[kuberay] = operator{
		component:  component,
		ports:      []string{"dashboard"},
		companions: []string{standin.RayDashboard},
		prepare:    prepareKuberay,
	}
}

func kuberayCRDFile(plural string) string { return "ray.io_" + plural + ".yaml" }

// prepareKuberay prepares the operator and a dashboard for all Ray clusters. The dashboard is the
// HTTP proxy of the operator, because the names of Services cannot be resolved in this cluster.
func prepareKuberay(ctx context.Context, s *setup) ([]part, error) {
	built := s.config.Built[operators[kuberay].component.Name]
	var definitions []string
	for _, plural := range kuberayKinds {
		definitions = append(definitions, filepath.Join(built, "crds", kuberayCRDFile(plural)))
	}
	if err := s.installCRDs(ctx, definitions); err != nil {
		return nil, err
	}
	if err := s.api.create(ctx, "/api/v1/namespaces", named(kuberayNamespace)); err != nil {
		return nil, err
	}
	// Created before the operator, which finds them when it starts.
	if err := s.submit(ctx, kuberayProbes()); err != nil {
		return nil, err
	}
	address := s.ports.address(kuberay + "-dashboard")
	return []part{s.rayDashboard(address), {
		name:  kuberay,
		rank:  rankOperator,
		ready: s.kuberayReady,
		grace: defaultGrace,
		spec: process.Spec{
			Name: kuberay,
			Path: filepath.Join(built, kuberay),
			Args: []string{
				"--enable-leader-election=false",
				"--health-probe-bind-address=0",
				"--metrics-addr=0",
				"--qps=" + clientQPS,
				"--burst=" + clientBurst,
				"--reconcile-concurrency=8",
				"--log-stdout-encoder=console",
			},
			Env: s.environment(
				"KUBECONFIG="+s.credentials.kubeconfig(kuberay),
				"HTTP_PROXY=http://"+address,
				"NO_PROXY=127.0.0.1,localhost",
			),
			Dir: string(s.folder),
			Log: s.folder.Log(kuberay),
		},
	}}, nil
}

// rayDashboard returns the dashboard at the address.
func (s *setup) rayDashboard(address string) part {
	p := s.standIn(standin.RayDashboard)
	p.ready = healthy(loopback(), "http://"+address+standin.HealthPath)
	p.spec.Args = append(p.spec.Args, "--listen="+address, "--run-time="+s.config.PodRunTime.String())
	return p
}

// kuberayProbes returns a minimal valid job of each kind.
func kuberayProbes() []probe {
	rayCluster := object{
		"headGroupSpec": object{
			"rayStartParams": object{},
			"template":       object{"spec": object{"containers": []object{{"name": "ray-head", "image": "none"}}}},
		},
	}
	suspended := maps.Clone(rayCluster)
	suspended["suspend"] = true
	metadata := object{"name": readinessJob, "namespace": kuberayNamespace}
	path := "/apis/ray.io/v1/namespaces/" + kuberayNamespace + "/"
	return []probe{
		{path + "rayclusters", object{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": suspended}},
		{path + "rayjobs", object{"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": object{
			"suspend": true,
			// The operator requires it for suspended jobs.
			"shutdownAfterJobFinishes": true,
			"entrypoint":               "none",
			"rayClusterSpec":           rayCluster,
		}}},
	}
}

// kuberayReady passes when the operator has suspended all probes, and deletes them. It reads the
// state, because the two kinds have no condition in common.
func (s *setup) kuberayReady(ctx context.Context) error {
	probes := kuberayProbes()
	for _, p := range probes {
		var found struct {
			Status struct{ State, JobDeploymentStatus string }
		}
		if err := s.api.get(ctx, p.path+"/"+readinessJob, &found); err != nil {
			return err
		}
		if found.Status.State != "suspended" && found.Status.JobDeploymentStatus != "Suspended" {
			return fmt.Errorf("a suspended %v is not handled yet", p.job["kind"])
		}
	}
	for _, p := range probes {
		if err := s.api.delete(ctx, p.path+"/"+readinessJob); err != nil {
			return err
		}
	}
	return nil
}
