// The reverse proxy that most servers stand behind. It passes bytes on, so client and server must be of one era.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { versionOnPath } from './install.mjs';

// Servers look at the Host header, which without a setting would be the name of `upstream`.
// Connections to the backend are kept: without `upstream` and an empty Connection header, nginx opens one a request.
const config = (folder, port, backend) => `
daemon off;
master_process off;
pid ${folder}/pid;
error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log ${folder}/access.log;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  keepalive_requests 1000000;
  upstream backend { server ${new URL(backend).host}; keepalive 64; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_buffering off;
    }
  }
}`;

export const nginx = {
  name: 'nginx',
  cells: ['LL', 'MM'],
  limit: 'passes bytes on; one era only',
  prepare: () => versionOnPath('nginx'),
  start({ folder, port, backend, spawn }) {
    mkdirSync(folder, { recursive: true });
    const file = join(folder, 'nginx.conf');
    writeFileSync(file, config(folder, port, backend));
    return spawn('nginx', ['-p', folder, '-c', file]);
  },
};
