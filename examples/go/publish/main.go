// Command publish opens a topic and publishes an event: go run ./publish TOPIC CONTENT
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

var client = &http.Client{Timeout: time.Minute}

// call calls an operation of REST and decodes its result.
func call(operation string, parameters map[string]string, result any) error {
	url := os.Getenv("STELE_URL")
	if url == "" {
		url = "http://127.0.0.1:8080"
	}
	body, err := json.Marshal(parameters)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, url+"/rest/"+operation, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("content-type", "application/json")
	if key := os.Getenv("STELE_KEY"); key != "" {
		request.Header.Set("authorization", "Bearer "+key)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	// REST answers a failure with status 200 and an object with a code.
	var failure struct {
		Code    int
		Message string
	}
	if json.Unmarshal(answer, &failure) == nil && failure.Code != 0 {
		return fmt.Errorf("%s: %d %s", operation, failure.Code, failure.Message)
	}
	return json.Unmarshal(answer, result)
}

func main() {
	topic, content := os.Args[1], os.Args[2]
	var opened bool
	if err := call("open", map[string]string{"topic": topic}, &opened); err != nil {
		log.Fatal(err)
	}
	var sent struct{ EventID, Status string }
	if err := call("publish", map[string]string{"topic": topic, "content": content}, &sent); err != nil {
		log.Fatal(err)
	}
	// TIMEOUT: the broker does not know yet whether the event is on the chain.
	if sent.Status != "SUCCESS" {
		log.Fatal("publish: ", sent.Status)
	}
	fmt.Println(sent.EventID)
}
