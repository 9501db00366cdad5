module kube-queue.dev/kube-queue/test/localcluster

go 1.26.0
