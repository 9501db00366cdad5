package chart

import (
	"cmp"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// rule is a rule of a published standard for pods. It is applied to each container with its effective security
// context: fields of the container override those of the pod.
type rule struct {
	name   string
	allows func(pod *corev1.PodSpec, c *corev1.Container, in *corev1.SecurityContext) bool
}

// ofBoth are rules of two standards: the restricted Pod Security Standard
// (kubernetes.io/docs/concepts/security/pod-security-standards), and OpenShift's SecurityContextConstraints
// restricted-v2. OpenShift sets some fields that are missing. The Kubernetes standard requires them.
var ofBoth = []rule{
	{"host namespaces", func(pod *corev1.PodSpec, _ *corev1.Container, _ *corev1.SecurityContext) bool {
		return !pod.HostNetwork && !pod.HostPID && !pod.HostIPC
	}},
	{"host ports", func(_ *corev1.PodSpec, c *corev1.Container, _ *corev1.SecurityContext) bool {
		return !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.HostPort != 0 })
	}},
	{"volumes", func(pod *corev1.PodSpec, _ *corev1.Container, _ *corev1.SecurityContext) bool {
		return !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.ConfigMap == nil && v.CSI == nil && v.DownwardAPI == nil && v.EmptyDir == nil && v.Ephemeral == nil &&
				v.PersistentVolumeClaim == nil && v.Projected == nil && v.Secret == nil
		})
	}},
	{"privileged", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.Privileged == nil || !*in.Privileged
	}},
	{"allowPrivilegeEscalation", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.AllowPrivilegeEscalation != nil && !*in.AllowPrivilegeEscalation
	}},
	{"capabilities", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.Capabilities != nil && slices.Contains(in.Capabilities.Drop, "ALL") &&
			!slices.ContainsFunc(in.Capabilities.Add, func(added corev1.Capability) bool { return added != "NET_BIND_SERVICE" })
	}},
}

var ofKubernetes = append([]rule{
	{"runAsNonRoot", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.RunAsNonRoot != nil && *in.RunAsNonRoot && (in.RunAsUser == nil || *in.RunAsUser != 0)
	}},
	{"seccomp", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.SeccompProfile != nil && in.SeccompProfile.Type != corev1.SeccompProfileTypeUnconfined
	}},
	{"SELinux", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.SELinuxOptions == nil || in.SELinuxOptions.User == "" && in.SELinuxOptions.Role == "" &&
			slices.Contains([]string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}, in.SELinuxOptions.Type)
	}},
	{"AppArmor", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.AppArmorProfile == nil || in.AppArmorProfile.Type != corev1.AppArmorProfileTypeUnconfined
	}},
	{"procMount", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.ProcMount == nil || *in.ProcMount == corev1.DefaultProcMount
	}},
	{"sysctls and hostProcess", func(pod *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.WindowsOptions == nil && (pod.SecurityContext == nil || len(pod.SecurityContext.Sysctls) == 0)
	}},
	{"hosts of probes", func(_ *corev1.PodSpec, c *corev1.Container, _ *corev1.SecurityContext) bool {
		hasHost := func(probe *corev1.Probe) bool { return probe != nil && probe.HTTPGet.Host != "" }
		return !hasHost(c.LivenessProbe) && !hasHost(c.ReadinessProbe) && c.StartupProbe == nil && c.Lifecycle == nil
	}},
}, ofBoth...)

var ofOpenShift = append([]rule{
	// The platform assigns these from a range per namespace.
	{"runAsUser: MustRunAsRange", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.RunAsUser == nil
	}},
	{"fsGroup: MustRunAs", func(pod *corev1.PodSpec, _ *corev1.Container, _ *corev1.SecurityContext) bool {
		return pod.SecurityContext == nil || pod.SecurityContext.FSGroup == nil
	}},
	{"seLinuxContext: MustRunAs", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.SELinuxOptions == nil
	}},
	{"seccompProfiles: [runtime/default]", func(_ *corev1.PodSpec, _ *corev1.Container, in *corev1.SecurityContext) bool {
		return in.SeccompProfile == nil || in.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault
	}},
}, ofBoth...)

// inForce is the effective security context of a container, including what it inherits from the pod.
func inForce(pod *corev1.PodSpec, c *corev1.Container) *corev1.SecurityContext {
	of, in := cmp.Or(pod.SecurityContext, &corev1.PodSecurityContext{}), cmp.Or(c.SecurityContext, &corev1.SecurityContext{}).DeepCopy()
	in.RunAsUser, in.RunAsNonRoot = cmp.Or(in.RunAsUser, of.RunAsUser), cmp.Or(in.RunAsNonRoot, of.RunAsNonRoot)
	in.SeccompProfile, in.SELinuxOptions = cmp.Or(in.SeccompProfile, of.SeccompProfile), cmp.Or(in.SELinuxOptions, of.SELinuxOptions)
	in.AppArmorProfile, in.WindowsOptions = cmp.Or(in.AppArmorProfile, of.AppArmorProfile), cmp.Or(in.WindowsOptions, of.WindowsOptions)
	return in
}

// broken are the names of the rules that a pod of the manifests breaks.
func broken(t *testing.T, rendered []object, rules []rule) []string {
	t.Helper()
	var names []string
	for _, o := range rendered {
		if o.GetKind() != "Deployment" && o.GetKind() != "Job" {
			continue
		}
		var deployment appsv1.Deployment // a Job has its template in the same place
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &deployment); err != nil {
			t.Fatal(err)
		}
		pod := &deployment.Spec.Template.Spec
		for i := range pod.Containers {
			c := &pod.Containers[i]
			for _, rule := range rules {
				if !rule.allows(pod, c, inForce(pod, c)) {
					names = append(names, rule.name)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

func TestPodsMeetTheRestrictedStandardsOfKubernetesAndOpenShift(t *testing.T) {
	for name, args := range map[string][]string{
		"default": nil, "webhook": {"--kube-version", "1.30.0"}, "resourcequota": {"--values", values("resourcequota")},
		"a file":           {"--set", "controller.config.workers=3,jobExtensions.config.workers=3"},
		"pages":            {"--set", "web.enabled=true,web.hosts={queue.example.com}"},
		"a client CA":      {"--set", "reviews.clientCASecret=api-servers"},
		"another registry": {"--set", "image.registry=registry.example.com"},
		"pods":             {"--set", "enabledExtensions={pod}"},
	} {
		rendered := render(t, args...)
		if names := broken(t, rendered, ofKubernetes); len(names) > 0 {
			t.Errorf("%s: Kubernetes refuses the pods for %q", name, names)
		}
		if names := broken(t, rendered, ofOpenShift); len(names) > 0 {
			t.Errorf("%s: OpenShift refuses the pods for %q", name, names)
		}
	}
}

func TestTheRulesRefusePodsThatBreakThem(t *testing.T) {
	for set, want := range map[string]struct{ kubernetes, openShift []string }{
		"controller.podSecurityContext.runAsUser=65532":                  {nil, []string{"runAsUser: MustRunAsRange"}},
		"controller.securityContext.runAsUser=0":                         {[]string{"runAsNonRoot"}, []string{"runAsUser: MustRunAsRange"}},
		"controller.podSecurityContext.fsGroup=1":                        {nil, []string{"fsGroup: MustRunAs"}},
		"controller.podSecurityContext.seccompProfile.type=Unconfined":   {[]string{"seccomp"}, []string{"seccompProfiles: [runtime/default]"}},
		"controller.podSecurityContext.seLinuxOptions.type=spc_t":        {[]string{"SELinux"}, []string{"seLinuxContext: MustRunAs"}},
		"jobExtensions.hostNetwork=true":                                 {[]string{"host namespaces"}, []string{"host namespaces"}},
		"jobExtensions.securityContext.capabilities.drop=null":           {[]string{"capabilities"}, []string{"capabilities"}},
		"jobExtensions.securityContext.allowPrivilegeEscalation=true":    {[]string{"allowPrivilegeEscalation"}, []string{"allowPrivilegeEscalation"}},
		"controller.extraVolumes[0].name=a":                              {[]string{"volumes"}, []string{"volumes"}},
		"controller.securityContext.readOnlyRootFilesystem=false":        {nil, nil},
		"controller.podSecurityContext.appArmorProfile.type=Unconfined":  {[]string{"AppArmor"}, nil},
		"controller.podSecurityContext.sysctls[0].name=kernel.shm_rmid_": {[]string{"sysctls and hostProcess"}, nil},

		// The Job before an uninstallation has the same context.
		"jobExtensions.securityContext.runAsUser=0,enabledExtensions={pod}": {[]string{"runAsNonRoot", "runAsNonRoot"}, []string{"runAsUser: MustRunAsRange", "runAsUser: MustRunAsRange"}},
	} {
		rendered := render(t, "--set", set)
		if got := broken(t, rendered, ofKubernetes); !slices.Equal(got, want.kubernetes) {
			t.Errorf("%s: Kubernetes refuses it for %q, want %q", set, got, want.kubernetes)
		}
		if got := broken(t, rendered, ofOpenShift); !slices.Equal(got, want.openShift) {
			t.Errorf("%s: OpenShift refuses it for %q, want %q", set, got, want.openShift)
		}
	}
}
