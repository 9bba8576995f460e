console.log("memviz");
