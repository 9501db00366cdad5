package kueue

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/pkg/migration"
)

// The types have the fields that are converted or reported, without those of metadata. All other fields of a spec are
// reported by their path.

type clusterQueue struct {
	Spec struct {
		quotaSpec         `json:",inline"`
		Cohort            string                `json:"cohort"`
		CohortName        string                `json:"cohortName"`
		QueueingStrategy  string                `json:"queueingStrategy"`
		NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
		FlavorFungibility struct {
			WhenCanBorrow  string `json:"whenCanBorrow"`
			WhenCanPreempt string `json:"whenCanPreempt"`
			Preference     string `json:"preference"`
		} `json:"flavorFungibility"`
		Preemption              preemption `json:"preemption"`
		AdmissionChecks         []string   `json:"admissionChecks"`
		AdmissionChecksStrategy struct {
			AdmissionChecks []struct {
				Name      string   `json:"name"`
				OnFlavors []string `json:"onFlavors"`
			} `json:"admissionChecks"`
		} `json:"admissionChecksStrategy"`
		StopPolicy     string `json:"stopPolicy"`
		AdmissionScope *struct {
			AdmissionMode string `json:"admissionMode"`
		} `json:"admissionScope"`
		ConcurrentAdmissionPolicy map[string]any `json:"concurrentAdmissionPolicy"`
	} `json:"spec"`
}

type quotaSpec struct {
	ResourceGroups []resourceGroup `json:"resourceGroups"`
	FairSharing    *fairSharing    `json:"fairSharing"`
}

type resourceGroup struct {
	CoveredResources []string `json:"coveredResources"`
	Flavors          []struct {
		Name      string `json:"name"`
		Resources []struct {
			Name           string          `json:"name"`
			NominalQuota   migration.Text  `json:"nominalQuota"`
			BorrowingLimit *migration.Text `json:"borrowingLimit"`
			LendingLimit   *migration.Text `json:"lendingLimit"`
		} `json:"resources"`
	} `json:"flavors"`
}

type fairSharing struct {
	Weight *migration.Text `json:"weight"`
}

type preemption struct {
	ReclaimWithinCohort string `json:"reclaimWithinCohort"`
	WithinClusterQueue  string `json:"withinClusterQueue"`
	BorrowWithinCohort  struct {
		Policy               string `json:"policy"`
		MaxPriorityThreshold *int32 `json:"maxPriorityThreshold"`
	} `json:"borrowWithinCohort"`
}

type cohort struct {
	Spec struct {
		quotaSpec  `json:",inline"`
		ParentName string `json:"parentName"`
	} `json:"spec"`
}

type localQueue struct {
	Spec struct {
		ClusterQueue string       `json:"clusterQueue"`
		StopPolicy   string       `json:"stopPolicy"`
		FairSharing  *fairSharing `json:"fairSharing"`
	} `json:"spec"`
}

type resourceFlavor struct {
	Spec struct {
		NodeLabels   map[string]string `json:"nodeLabels"`
		NodeTaints   []map[string]any  `json:"nodeTaints"`
		Tolerations  []map[string]any  `json:"tolerations"`
		TopologyName string            `json:"topologyName"`
	} `json:"spec"`
}

type workloadPriorityClass struct {
	Value       int32  `json:"value"`
	Description string `json:"description"`
}

type admissionCheck struct {
	Spec struct {
		ControllerName    string `json:"controllerName"`
		RetryDelayMinutes *int64 `json:"retryDelayMinutes"`
		Parameters        *struct {
			APIGroup string `json:"apiGroup"`
			Kind     string `json:"kind"`
			Name     string `json:"name"`
		} `json:"parameters"`
	} `json:"spec"`
}

type provisioningRequestConfig struct {
	Spec struct {
		ProvisioningClassName string            `json:"provisioningClassName"`
		Parameters            map[string]string `json:"parameters"`
		ManagedResources      []string          `json:"managedResources"`
		RetryStrategy         *struct {
			BackoffLimitCount  *int32 `json:"backoffLimitCount"`
			BackoffBaseSeconds *int32 `json:"backoffBaseSeconds"`
			BackoffMaxSeconds  *int32 `json:"backoffMaxSeconds"`
		} `json:"retryStrategy"`
		PodSetUpdates     map[string]any `json:"podSetUpdates"`
		PodSetMergePolicy string         `json:"podSetMergePolicy"`
	} `json:"spec"`
}
