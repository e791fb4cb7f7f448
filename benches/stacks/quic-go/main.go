// A download by quic-go: "serve SIZE" sends so many bytes to whoever connects, "get ADDRESS SIZE"
// takes them and writes them to standard output.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
)

const protocol = "airtcp-stacks"

func main() {
	size, err := strconv.ParseInt(os.Args[len(os.Args)-1], 10, 64)
	check(err)
	if os.Args[1] == "serve" {
		serve(size)
	} else {
		get(os.Args[2], size)
	}
}

func serve(size int64) {
	listener, err := quic.ListenAddr("0.0.0.0:8000", certificate(), nil)
	check(err)
	for {
		connection, err := listener.Accept(context.Background())
		check(err)
		stream, err := connection.AcceptStream(context.Background())
		check(err)
		_, err = io.CopyN(stream, zeros{}, size)
		check(err)
		check(stream.Close())
		<-connection.Context().Done()
	}
}

func get(address string, size int64) {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	connection, err := quic.DialAddr(context.Background(), address, config, nil)
	check(err)
	stream, err := connection.OpenStreamSync(context.Background())
	check(err)
	_, err = stream.Write([]byte("get"))
	check(err)
	_, err = io.CopyN(os.Stdout, stream, size)
	check(err)
	check(connection.CloseWithError(0, ""))
}

type zeros struct{}

func (zeros) Read(buffer []byte) (int, error) {
	clear(buffer)
	return len(buffer), nil
}

func certificate() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	check(err)
	own := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{protocol}}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
