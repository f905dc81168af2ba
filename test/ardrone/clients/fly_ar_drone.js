// SPDX-License-Identifier: Apache-2.0
// Flies with npm's ar-drone: takes off, goes ahead, lands. Prints what its navdata reports.
'use strict';
const client = require('ar-drone').createClient({ ip: process.argv[2] });
let forward = 0;
client.config('general:navdata_demo', 'TRUE');
client.on('navdata', (data) => {
  if (data.demo) forward = Math.max(forward, data.demo.xVelocity);
});
client.on('error', (error) => { throw error; });
client.takeoff(() => {
  console.log('flying', client._lastState);
  client.front(0.5);
  client.after(2000, () => {
    client.stop();
    client.land(() => {
      console.log('landed', Math.round(forward));
      process.exit(0);
    });
  });
});
