module stele.example

go 1.19
