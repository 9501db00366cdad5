package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
)

const controlPlane = "controlplane"

// kubernetes is a version of Kubernetes that a cluster can have.
type kubernetes struct {
	// minor is what users select.
	minor, version string
	// modFile is the file in the component's folder that pins the version, if it is not go.mod.
	modFile string
	// noSchedulerReadyz: kube-scheduler has only /healthz.
	noSchedulerReadyz bool
}

// defaultKubernetes is the minor version of a cluster that requests no other.
const defaultKubernetes = "1.36"

// kubernetesVersions are the known versions, the oldest first.
var kubernetesVersions = []kubernetes{
	{minor: "1.30", version: "v1.30.14", modFile: "kubernetes-1.30.mod", noSchedulerReadyz: true},
	{minor: "1.34", version: "v1.34.10", modFile: "kubernetes-1.34.mod"},
	{minor: defaultKubernetes, version: "v1.36.3"},
	{minor: "1.37", version: "v1.37.2", modFile: "kubernetes-1.37.mod"},
}

// KubernetesVersions returns the known minor versions, the oldest first.
func KubernetesVersions() []string {
	var all []string
	for _, k := range kubernetesVersions {
		all = append(all, k.minor)
	}
	return all
}

// kubernetes returns the version of the cluster.
func (c Config) kubernetes() kubernetes {
	return kubernetesVersions[slices.Index(KubernetesVersions(), c.Kubernetes)]
}

// auditPolicy is the audit policy of the API server. AUDIT_LEVEL is replaced by Config.AuditLevel,
// and the line AUDIT_OBJECTS by a rule for each of Config.AuditObjects.
//
//go:embed audit-policy.yaml
var auditPolicy string

// renderAuditPolicy fills in the level and the resources. A resource does not include its
// subresources.
func renderAuditPolicy(level string, objects []string) string {
	var rules strings.Builder
	for _, object := range objects {
		resource, group, _ := strings.Cut(object, ".")
		fmt.Fprintf(&rules, "- level: RequestResponse\n  verbs: [create, update, patch]\n  resources:\n  - group: %q\n    resources: [%s]\n", group, resource)
	}
	return strings.NewReplacer("AUDIT_LEVEL", level, "# AUDIT_OBJECTS\n", rules.String()).Replace(auditPolicy)
}

// serviceCIDR is the range of Service addresses. Only the API server can connect to them: see egress.
const serviceCIDR = "10.96.0.0/16"

// High rate limits, because the cluster is used for load tests.
const clientQPS, clientBurst = "2000", "4000"

func controlPlaneComponent(k kubernetes) build.Component {
	major, minor, _ := strings.Cut(k.minor, ".")
	flags := []string{"-s", "-w"}
	// Without these, discovery and kubectl report v0.0.0-master. User agents have the version of client-go.
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			fmt.Sprintf("-X %s.gitVersion=%s", pkg, k.version),
			fmt.Sprintf("-X %s.gitMajor=%s", pkg, major),
			fmt.Sprintf("-X %s.gitMinor=%s", pkg, minor))
	}
	return build.Component{
		Name:    controlPlane,
		ModFile: k.modFile,
		Package: ".",
		Binary:  "controlplane",
		Links:   []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"},
		LDFlags: strings.Join(flags, " "),
	}
}

func (s *setup) etcd() part {
	client, peer := "http://"+s.ports.address(portEtcdClient), "http://"+s.ports.address(portEtcdPeer)
	return s.core("etcd", rankEtcd, healthy(client+"/health"), []string{
		"--name=etcd",
		"--data-dir=" + s.folder.Path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=etcd=" + peer,
		// Data need not survive a power failure.
		"--unsafe-no-fsync",
		// A single member needs no time for elections.
		"--heartbeat-interval=10", "--election-timeout=100",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	})
}

func (s *setup) apiServer() (part, error) {
	policy := s.folder.Path("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(renderAuditPolicy(s.config.AuditLevel, s.config.AuditObjects)), 0o644); err != nil {
		return part{}, err
	}
	egress := s.folder.Path("egress.json")
	if err := s.writeEgressSelection(egress); err != nil {
		return part{}, err
	}
	ready := func(ctx context.Context) error { return s.api.Get(ctx, "/readyz", nil) }
	args := append(s.kubernetesFlags(),
		"--etcd-servers=http://"+s.ports.address(portEtcdClient),
		fmt.Sprintf("--secure-port=%d", s.ports[portAPIServer]),
		"--token-auth-file="+s.credentials.file("tokens.csv"),
		"--anonymous-auth=false",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+s.credentials.file("service-account.key"),
		"--service-account-signing-key-file="+s.credentials.file("service-account.key"),
		"--service-cluster-ip-range="+serviceCIDR,
		"--egress-selector-config-file="+egress,
		// By default it uses the machine's address, and fails if there is none.
		"--advertise-address=127.0.0.1", "--external-hostname=localhost",
		// A loopback address is invalid in an EndpointSlice.
		"--endpoint-reconciler-type=none",
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
		"--audit-policy-file="+policy,
		"--audit-log-path="+s.folder.AuditLog(),
		// In megabytes. Readers need one file that is not rotated.
		"--audit-log-maxsize=10000000",
	)
	if len(s.config.APIs) > 0 {
		args = append(args, "--runtime-config="+strings.Join(s.config.APIs, ","))
	}
	return s.core("kube-apiserver", rankAPIServer, ready, args, "GOMEMLIMIT=12GiB"), nil
}

func (s *setup) controllerManager() part {
	controllers := "*"
	if !s.config.TypeCheck {
		controllers += ",-validatingadmissionpolicy-status-controller"
	}
	return s.controller("kube-controller-manager", rankControllerManager, userControllerManager, portControllerManager, "/healthz",
		"--service-account-private-key-file="+s.credentials.file("service-account.key"),
		"--root-ca-file="+s.credentials.file("ca.crt"),
		"--service-cluster-ip-range="+serviceCIDR,
		"--controllers="+controllers,
		// The role of the controller manager allows little more than requesting tokens of the
		// controllers' ServiceAccounts.
		"--use-service-account-credentials=true",
		// The API server may refuse a pod after a ResourceQuota has counted it, because its name exists. The quota
		// counts the pod until the next sync, which is every five minutes by default.
		"--resource-quota-sync-period=20s",
	)
}

func (s *setup) scheduler() part {
	health := "/readyz"
	if s.config.kubernetes().noSchedulerReadyz {
		health = "/healthz"
	}
	return s.controller("kube-scheduler", rankScheduler, userScheduler, portScheduler, health)
}

// controller returns a part that is a client of the API server.
func (s *setup) controller(name string, rank rank, user, port, health string, args ...string) part {
	kubeconfig := s.credentials.kubeconfig(user)
	common := append(s.kubernetesFlags(),
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--leader-elect=false",
		fmt.Sprintf("--secure-port=%d", s.ports[port]),
		"--kube-api-qps="+clientQPS,
		"--kube-api-burst="+clientBurst,
	)
	return s.core(name, rank, healthy("https://"+s.ports.address(port)+health), append(common, args...))
}

// kubernetesFlags returns the flags of all programs of Kubernetes.
func (s *setup) kubernetesFlags() []string {
	flags := []string{
		"--bind-address=127.0.0.1",
		// By default the program generates an RSA key, which takes a second.
		"--tls-cert-file=" + s.credentials.file("serving.crt"),
		"--tls-private-key-file=" + s.credentials.file("serving.key"),
	}
	if len(s.config.FeatureGates) > 0 {
		flags = append(flags, "--feature-gates="+strings.Join(s.config.FeatureGates, ","))
	}
	return flags
}

// defaultAccount passes when pods can be created in the default namespace.
func (s *setup) defaultAccount(ctx context.Context) error {
	err := s.api.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
	if apierrors.IsNotFound(err) {
		return errors.New("the default service account does not exist yet")
	}
	return err
}
