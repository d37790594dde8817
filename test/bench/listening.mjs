/** For the forked servers of the bench: listens on a free loopback port, reports it, and ends with its parent. */
export function reportListening(server) {
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
  process.on('disconnect', () => process.exit());
}
