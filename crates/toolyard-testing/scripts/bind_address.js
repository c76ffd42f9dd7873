// Lets the servers of a Node.js program listen on the address BIND only.
const { Server } = require("node:net");
const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, { port: Number(port), host: process.env.BIND }, ...rest);
};
