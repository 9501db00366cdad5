package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"
)

func TestAnArchive(t *testing.T) {
	folder := t.TempDir()
	images(t, fixture(t), folder, "--registry", "registry.example.com:5000/batch")
	archive, index, top := opened(t, filepath.Join(folder, "kube-queue-controller-v1.2.3-image.tar"))
	manifest, err := index.IndexManifest()
	must(t, err)

	t.Run("names each blob by its digest, and every descriptor has its blob", func(t *testing.T) {
		digests := []v1.Descriptor{top}
		for _, d := range manifest.Manifests {
			digests = append(digests, d)
			var m v1.Manifest
			decodeJSON(t, blobOf(t, archive, d), &m)
			digests = append(append(digests, m.Config), m.Layers...)
		}
		known := map[string]bool{}
		for _, d := range digests {
			data := blobOf(t, archive, d)
			if int64(len(data)) != d.Size || (file{data: data}).sum() != d.Digest.Hex {
				t.Errorf("%s is not what its blob is", d.Digest)
			}
			known[d.Digest.Hex] = true
		}
		blobs, err := os.ReadDir(filepath.Join(archive, "blobs/sha256"))
		must(t, err)
		for _, blob := range blobs {
			if !known[blob.Name()] {
				t.Errorf("nobody names %s", blob.Name())
			}
		}
	})

	t.Run("has the whole name for containerd and podman and the tag for others", func(t *testing.T) {
		want := map[string]string{"io.containerd.image.name": "registry.example.com:5000/batch/kube-queue/kube-queue-controller:v1.2.3", "org.opencontainers.image.ref.name": "v1.2.3"}
		if !reflect.DeepEqual(top.Annotations, want) {
			t.Errorf("the index has %v", top.Annotations)
		}
	})

	t.Run("lists an image for each platform, then a bill of materials for each", func(t *testing.T) {
		var got []string
		for _, d := range manifest.Manifests {
			got = append(got, d.Platform.OS+"/"+d.Platform.Architecture)
		}
		want := []string{"linux/amd64", "linux/arm64", "unknown/unknown", "unknown/unknown"}
		if !slices.Equal(got, want) {
			t.Errorf("it lists %q", got)
		}
	})

	t.Run("keeps its digest when skopeo decodes the index and encodes it again", func(t *testing.T) {
		text := blobOf(t, archive, top)
		var index ocispec.Index
		decodeJSON(t, text, &index)
		again, err := json.Marshal(index)
		must(t, err)
		if string(again) != string(text) {
			t.Errorf("the index is\n%s\nand encoded again\n%s", text, again)
		}
		// The types of OCI 1.0, as in skopeo 1.9, drop it.
		if strings.Contains(string(text), "artifactType") {
			t.Error("the index contains a field that OCI 1.0 does not have")
		}
	})

	t.Run("has the annotations of OCI on the index", func(t *testing.T) { checkNotes(t, manifest.Annotations) })

	for i, arch := range []string{"amd64", "arm64"} {
		img, err := index.Image(manifest.Manifests[i].Digest)
		must(t, err)
		t.Run("runs the program alone as nobody on "+arch, func(t *testing.T) { checkConfig(t, img, arch) })
		t.Run("has the binary of the archive beside it for "+arch, func(t *testing.T) {
			checkFiles(t, img, arch, []byte(binaryOf(t, folder, arch)))
		})
		t.Run("attaches the bill of materials to the image for "+arch, func(t *testing.T) {
			var m v1.Manifest
			decodeJSON(t, blobOf(t, archive, manifest.Manifests[2+i]), &m)
			if m.Subject == nil || m.Subject.Digest != manifest.Manifests[i].Digest || m.Subject.Size != manifest.Manifests[i].Size {
				t.Errorf("its subject is %v", m.Subject)
			}
			if m.ArtifactType != bomType || m.Config.MediaType != ocispec.MediaTypeEmptyJSON || len(m.Layers) != 1 || m.Layers[0].MediaType != bomType {
				t.Errorf("its manifest is %+v", m)
			}
			if got := blobOf(t, archive, m.Layers[0]); string(got) != read(t, filepath.Join(folder, "kube-queue-controller-v1.2.3-linux-"+arch+".cdx.json")) {
				t.Error("it is not the one that lies beside the archive")
			}
		})
	}

	t.Run("can be loaded by Docker's own store, which keeps the first platform", func(t *testing.T) {
		var loads []struct {
			Config           string
			RepoTags, Layers []string
		}
		decodeJSON(t, []byte(read(t, filepath.Join(archive, "manifest.json"))), &loads)
		var architectures []string
		for _, load := range loads {
			var config v1.ConfigFile
			decodeJSON(t, []byte(read(t, filepath.Join(archive, load.Config))), &config)
			architectures = append(architectures, config.Architecture)
			if len(load.Layers) != 1 || read(t, filepath.Join(archive, load.Layers[0])) == "" {
				t.Errorf("its layers are %q", load.Layers)
			}
			if !slices.Equal(load.RepoTags, []string{"registry.example.com:5000/batch/kube-queue/kube-queue-controller:v1.2.3"}) {
				t.Errorf("its tags are %q", load.RepoTags)
			}
		}
		if !slices.Equal(architectures, []string{"arm64", "amd64"}) {
			t.Errorf("it has %q", architectures)
		}
	})
}

func checkNotes(t *testing.T, notes map[string]string) {
	t.Helper()
	want := map[string]string{
		"org.opencontainers.image.title": "kube-queue-controller", "org.opencontainers.image.version": "v1.2.3", "org.opencontainers.image.revision": "abc",
		"org.opencontainers.image.created": "2023-11-14T22:13:20Z", "org.opencontainers.image.licenses": "Apache-2.0",
	}
	if !reflect.DeepEqual(notes, want) {
		t.Errorf("they are %v", notes)
	}
}

func checkConfig(t *testing.T, img v1.Image, arch string) {
	t.Helper()
	config, err := img.ConfigFile()
	must(t, err)
	checkNotes(t, config.Config.Labels)
	manifest, err := img.Manifest()
	must(t, err)
	checkNotes(t, manifest.Annotations)
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON || manifest.Layers[0].MediaType != types.OCILayer {
		t.Errorf("the types are not those of OCI: %+v", manifest)
	}
	config.Config.Labels = nil
	if want := (v1.Config{User: "65532:65532", WorkingDir: "/", Entrypoint: []string{"/kube-queue-controller"}}); !reflect.DeepEqual(config.Config, want) {
		t.Errorf("the configuration is %+v", config.Config)
	}
	if config.OS != "linux" || config.Architecture != arch || !config.Created.Equal(at) || len(config.History) != 1 || !config.History[0].Created.Equal(at) {
		t.Errorf("it is of %s/%s, %v, with history %v", config.OS, config.Architecture, config.Created, config.History)
	}
}

func checkFiles(t *testing.T, img v1.Image, arch string, binary []byte) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("there are %d layers: %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	must(t, err)
	data, err := io.ReadAll(content)
	must(t, err)
	config, err := img.ConfigFile()
	if err != nil || config.RootFS.DiffIDs[0].Hex != (file{data: data}).sum() {
		t.Errorf("the layer's digest is not in the configuration: %v", err)
	}
	want := map[string]int64{"etc/": 0o755, "etc/group": 0o644, "etc/passwd": 0o644, "kube-queue-controller": 0o755}
	files := map[string][]byte{}
	each(t, data, func(header *tar.Header, data []byte) {
		files[header.Name] = data
		if mode, ok := want[header.Name]; !ok || header.Mode != mode || !header.ModTime.Equal(at) {
			t.Errorf("there is %s %o of %v", header.Name, header.Mode, header.ModTime)
		}
	})
	if len(files) != len(want) || !strings.Contains(string(files["etc/passwd"]), "\nnonroot:x:65532:65532:") {
		t.Errorf("there are %d files, and the users are %s", len(files), files["etc/passwd"])
	}
	if !bytes.Equal(files["kube-queue-controller"], binary) {
		t.Error("the binary is another")
	}
	checkStatic(t, binary, arch)
}

func checkStatic(t *testing.T, binary []byte, arch string) {
	t.Helper()
	program, err := elf.NewFile(bytes.NewReader(binary))
	must(t, err)
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; program.Machine != want {
		t.Errorf("it is for %v", program.Machine)
	}
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Errorf("it is not static: %v", segment.Type)
		}
	}
	if program.Section(".symtab") != nil || program.Section(".debug_info") != nil {
		t.Error("it is not stripped")
	}
}

// opened unpacks an archive to a folder like a push, and checks how it is packed. It returns the only image in the
// archive, and its name in index.json.
func opened(t *testing.T, path string) (folder string, index v1.ImageIndex, top v1.Descriptor) {
	t.Helper()
	folder = t.TempDir()
	top, content, err := open(t.Context(), path, folder)
	must(t, err)
	var names []string
	each(t, []byte(read(t, path)), func(header *tar.Header, _ []byte) {
		names = append(names, header.Name)
		if !header.ModTime.Equal(at) {
			t.Errorf("%s is of %v", header.Name, header.ModTime)
		}
	})
	if !slices.IsSorted(names) {
		t.Errorf("it is not sorted: %q", names)
	}
	return folder, content.(v1.ImageIndex), top
}

// binaryOf returns the program from its archive.
func binaryOf(t *testing.T, folder, arch string) string {
	t.Helper()
	return untar(t, []byte(read(t, filepath.Join(folder, "kube-queue-controller-v1.2.3-linux-"+arch+".tar.gz"))))["kube-queue-controller"]
}

func blobOf(t *testing.T, unpacked string, d v1.Descriptor) []byte {
	t.Helper()
	return []byte(read(t, filepath.Join(unpacked, "blobs/sha256", d.Digest.Hex)))
}

func decodeJSON(t *testing.T, data []byte, into any) {
	t.Helper()
	must(t, json.Unmarshal(data, into))
}

// The first commands of README.md that need no cluster. The second and third load what the first makes. The chart runs
// it, because it names no registry.
func TestTheReadmeLoadsTheImagesThatTheChartRuns(t *testing.T) {
	const root = "../../../"
	_, block, _ := strings.Cut(read(t, root+"README.md"), "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	commands := strings.Split(strings.TrimSpace(block), "\n")
	version, makes := strings.CutPrefix(commands[0], "make images VERSION=")
	if last := commands[len(commands)-1]; !makes || len(commands) != 4 || !strings.HasPrefix(last, "helm install kube-queue "+chartFolder+" ") || strings.Contains(last, "--set") {
		t.Fatalf("README.md begins with %q", commands)
	}
	var chart struct {
		Image                     struct{ Registry, Tag string }
		Controller, JobExtensions struct {
			Image struct{ Repository, Digest string }
		}
	}
	must(t, yaml.Unmarshal([]byte(read(t, root+chartFolder+"/values.yaml")), &chart))
	var m metadata
	must(t, yaml.Unmarshal([]byte(read(t, root+chartFolder+"/Chart.yaml")), &m))
	if chart.Image.Registry+chart.Image.Tag+chart.Controller.Image.Digest+chart.JobExtensions.Image.Digest != "" || m.AppVersion != version {
		t.Errorf("make images gives version %s, and the chart has appVersion %s and the images %+v", version, m.AppVersion, chart)
	}
	folder := t.TempDir()
	images(t, fixture(t), folder, "--version", version)
	for i, repository := range []string{chart.Controller.Image.Repository, chart.JobExtensions.Image.Repository} {
		archive := strings.TrimPrefix(repository, "kube-queue/") + "-" + version + "-image.tar"
		if want := "kind load image-archive bin/images/" + archive; commands[1+i] != want {
			t.Errorf("README.md says %q, want %q", commands[1+i], want)
		}
		_, _, top := opened(t, filepath.Join(folder, archive))
		if got, want := top.Annotations["io.containerd.image.name"], "docker.io/"+repository+":"+version; got != want {
			t.Errorf("%s has the image %s, and the chart runs %s", archive, got, want)
		}
	}
}
