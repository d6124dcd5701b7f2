// Decodes manifests into the types of Kubernetes and of the Prometheus operator, and refuses what those do not know.
package main

import (
	"fmt"
	"os"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

var kinds = map[string]func() any{
	"v1/ConfigMap":                            func() any { return &core.ConfigMap{} },
	"v1/Pod":                                  func() any { return &core.Pod{} },
	"v1/Service":                              func() any { return &core.Service{} },
	"v1/ServiceAccount":                       func() any { return &core.ServiceAccount{} },
	"apps/v1/Deployment":                      func() any { return &apps.Deployment{} },
	"autoscaling/v2/HorizontalPodAutoscaler":  func() any { return &autoscaling.HorizontalPodAutoscaler{} },
	"networking.k8s.io/v1/NetworkPolicy":      func() any { return &networking.NetworkPolicy{} },
	"policy/v1/PodDisruptionBudget":           func() any { return &policy.PodDisruptionBudget{} },
	"monitoring.coreos.com/v1/ServiceMonitor": func() any { return &monitoring.ServiceMonitor{} },
	"monitoring.coreos.com/v1/PrometheusRule": func() any { return &monitoring.PrometheusRule{} },
}

func main() {
	failed := false
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		count := 0
		for _, document := range strings.Split("\n"+string(text), "\n---\n") {
			var head struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(document), &head); err != nil || head.Kind == "" {
				if err != nil {
					failed = true
					fmt.Printf("%s: %v\n", file, err)
				}
				continue
			}
			count++
			name := head.APIVersion + "/" + head.Kind
			if err := decode(name, []byte(document)); err != nil {
				failed = true
				fmt.Printf("%s: %s: %v\n", file, name, err)
			}
		}
		if count == 0 {
			failed = true
			fmt.Printf("%s: no manifests\n", file)
		}
	}
	if failed {
		os.Exit(1)
	}
}

func decode(name string, document []byte) error {
	create, known := kinds[name]
	if !known {
		return fmt.Errorf("unknown kind")
	}
	object := create()
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		return err
	}
	// The sidecar of this chart is a container, written down in a ConfigMap.
	if configMap, ok := object.(*core.ConfigMap); ok && configMap.Data["container"] != "" {
		var container core.Container
		var volumes []core.Volume
		if err := yaml.UnmarshalStrict([]byte(configMap.Data["container"]), &container); err != nil {
			return err
		}
		return yaml.UnmarshalStrict([]byte(configMap.Data["volumes"]), &volumes)
	}
	return nil
}
