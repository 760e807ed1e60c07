// Command receive accepts callbacks with a valid signature (Standard Webhooks): PORT=9000 SECRET=whsec_… go run ./receive
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	bodyBytesMax = 1 << 24
	tolerance    = 5 * time.Minute
)

// isSigned reports whether the timestamp is recent and one of the signatures matches the body.
func isSigned(header http.Header, body, key []byte) bool {
	stamp := header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", header.Get("webhook-id"), stamp)
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, signature := range strings.Fields(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(signature), []byte(expected)) {
			return true
		}
	}
	return false
}

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("SECRET"), "whsec_"))
	if err != nil {
		log.Fatal("SECRET: ", err)
	}
	if len(key) == 0 {
		log.Fatal("SECRET is missing: everybody could sign with an empty key")
	}
	http.HandleFunc("/", func(response http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodPost {
			// OPTIONS gets this answer too: the broker asks for consent by it. With callbackConsent: require, the broker then sends a signed ping.
			http.Error(response, "only POST", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, bodyBytesMax))
		if err != nil {
			http.Error(response, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		if !isSigned(request.Header, body, key) {
			http.Error(response, "signature", http.StatusUnauthorized)
			return
		}
		type event struct {
			EventID, Topic string
			Content        []byte // encoding/json decodes the Base64.
		}
		var call struct {
			Event  *event
			Events []event // Of a batch.
			Ping   string  // Set if the broker only asks whether it may call.
		}
		if err := json.Unmarshal(body, &call); err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		if call.Event != nil {
			call.Events = append(call.Events, *call.Event)
		}
		if call.Ping == "" && len(call.Events) == 0 {
			http.Error(response, "no event", http.StatusBadRequest)
			return
		}
		if call.Ping == "" {
			for _, one := range call.Events {
				fmt.Println(one.EventID, one.Topic, string(one.Content))
			}
		}
		response.WriteHeader(http.StatusNoContent)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening", os.Getenv("PORT"))
	log.Fatal(http.Serve(listener, nil))
}
