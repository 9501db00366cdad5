package model

import (
	"encoding/json"
	"time"
)

const leaseGroup = "coordination.k8s.io"

// programNamespace is where the programs' leases are.
const programNamespace = "kube-queue"

// deciderLease is the lease of the program that decides why a unit waits.
const deciderLease = "kube-queue-controller"

// LeaseFacts is who holds a lease, and for how long after each renewal.
type LeaseFacts struct {
	Holder string
	Lasts  time.Duration
}

func parseLease(_ *decoder, _ string, m *meta, raw json.RawMessage) (any, error) {
	if m.Namespace != programNamespace {
		return nil, nil
	}
	var lease struct {
		Spec struct {
			HolderIdentity       string
			LeaseDurationSeconds int
		}
	}
	if err := json.Unmarshal(raw, &lease); err != nil {
		return nil, err
	}
	return &LeaseFacts{lease.Spec.HolderIdentity, time.Duration(lease.Spec.LeaseDurationSeconds) * time.Second}, nil
}
