BEGIN TRANSACTION;
CREATE TABLE "auth_group" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(150) NOT NULL UNIQUE);
INSERT INTO "auth_group" VALUES(1,'name-0');
INSERT INTO "auth_group" VALUES(2,'name-1');
CREATE TABLE "auth_group_permissions" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "group_id" integer NOT NULL REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED, "permission_id" integer NOT NULL REFERENCES "auth_permission" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "auth_group_permissions" VALUES(1,1,1);
INSERT INTO "auth_group_permissions" VALUES(2,2,1);
CREATE TABLE "auth_permission" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "content_type_id" integer NOT NULL REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED, "codename" varchar(100) NOT NULL, "name" varchar(255) NOT NULL);
INSERT INTO "auth_permission" VALUES(1,1,'add_logentry','Can add log entry');
INSERT INTO "auth_permission" VALUES(2,1,'change_logentry','Can change log entry');
INSERT INTO "auth_permission" VALUES(3,1,'delete_logentry','Can delete log entry');
INSERT INTO "auth_permission" VALUES(4,1,'view_logentry','Can view log entry');
INSERT INTO "auth_permission" VALUES(5,2,'add_permission','Can add permission');
INSERT INTO "auth_permission" VALUES(6,2,'change_permission','Can change permission');
INSERT INTO "auth_permission" VALUES(7,2,'delete_permission','Can delete permission');
INSERT INTO "auth_permission" VALUES(8,2,'view_permission','Can view permission');
INSERT INTO "auth_permission" VALUES(9,3,'add_group','Can add group');
INSERT INTO "auth_permission" VALUES(10,3,'change_group','Can change group');
INSERT INTO "auth_permission" VALUES(11,3,'delete_group','Can delete group');
INSERT INTO "auth_permission" VALUES(12,3,'view_group','Can view group');
INSERT INTO "auth_permission" VALUES(13,4,'add_user','Can add user');
INSERT INTO "auth_permission" VALUES(14,4,'change_user','Can change user');
INSERT INTO "auth_permission" VALUES(15,4,'delete_user','Can delete user');
INSERT INTO "auth_permission" VALUES(16,4,'view_user','Can view user');
INSERT INTO "auth_permission" VALUES(17,5,'add_contenttype','Can add content type');
INSERT INTO "auth_permission" VALUES(18,5,'change_contenttype','Can change content type');
INSERT INTO "auth_permission" VALUES(19,5,'delete_contenttype','Can delete content type');
INSERT INTO "auth_permission" VALUES(20,5,'view_contenttype','Can view content type');
INSERT INTO "auth_permission" VALUES(21,6,'add_session','Can add session');
INSERT INTO "auth_permission" VALUES(22,6,'change_session','Can change session');
INSERT INTO "auth_permission" VALUES(23,6,'delete_session','Can delete session');
INSERT INTO "auth_permission" VALUES(24,6,'view_session','Can view session');
INSERT INTO "auth_permission" VALUES(25,7,'add_healthsnapshot','Can add health snapshot');
INSERT INTO "auth_permission" VALUES(26,7,'change_healthsnapshot','Can change health snapshot');
INSERT INTO "auth_permission" VALUES(27,7,'delete_healthsnapshot','Can delete health snapshot');
INSERT INTO "auth_permission" VALUES(28,7,'view_healthsnapshot','Can view health snapshot');
INSERT INTO "auth_permission" VALUES(29,8,'add_contextsettings','Can add context settings');
INSERT INTO "auth_permission" VALUES(30,8,'change_contextsettings','Can change context settings');
INSERT INTO "auth_permission" VALUES(31,8,'delete_contextsettings','Can delete context settings');
INSERT INTO "auth_permission" VALUES(32,8,'view_contextsettings','Can view context settings');
INSERT INTO "auth_permission" VALUES(33,9,'add_proposal','Can add proposal');
INSERT INTO "auth_permission" VALUES(34,9,'change_proposal','Can change proposal');
INSERT INTO "auth_permission" VALUES(35,9,'delete_proposal','Can delete proposal');
INSERT INTO "auth_permission" VALUES(36,9,'view_proposal','Can view proposal');
INSERT INTO "auth_permission" VALUES(37,10,'add_remediationrun','Can add remediation run');
INSERT INTO "auth_permission" VALUES(38,10,'change_remediationrun','Can change remediation run');
INSERT INTO "auth_permission" VALUES(39,10,'delete_remediationrun','Can delete remediation run');
INSERT INTO "auth_permission" VALUES(40,10,'view_remediationrun','Can view remediation run');
INSERT INTO "auth_permission" VALUES(41,11,'add_removedunit','Can add removed unit');
INSERT INTO "auth_permission" VALUES(42,11,'change_removedunit','Can change removed unit');
INSERT INTO "auth_permission" VALUES(43,11,'delete_removedunit','Can delete removed unit');
INSERT INTO "auth_permission" VALUES(44,11,'view_removedunit','Can view removed unit');
INSERT INTO "auth_permission" VALUES(45,12,'add_cleanuptask','Can add cleanup task');
INSERT INTO "auth_permission" VALUES(46,12,'change_cleanuptask','Can change cleanup task');
INSERT INTO "auth_permission" VALUES(47,12,'delete_cleanuptask','Can delete cleanup task');
INSERT INTO "auth_permission" VALUES(48,12,'view_cleanuptask','Can view cleanup task');
INSERT INTO "auth_permission" VALUES(49,13,'add_contextevent','Can add context event');
INSERT INTO "auth_permission" VALUES(50,13,'change_contextevent','Can change context event');
INSERT INTO "auth_permission" VALUES(51,13,'delete_contextevent','Can delete context event');
INSERT INTO "auth_permission" VALUES(52,13,'view_contextevent','Can view context event');
INSERT INTO "auth_permission" VALUES(53,14,'add_agent','Can add agent');
INSERT INTO "auth_permission" VALUES(54,14,'change_agent','Can change agent');
INSERT INTO "auth_permission" VALUES(55,14,'delete_agent','Can delete agent');
INSERT INTO "auth_permission" VALUES(56,14,'view_agent','Can view agent');
INSERT INTO "auth_permission" VALUES(57,15,'add_dialog','Can add dialog');
INSERT INTO "auth_permission" VALUES(58,15,'change_dialog','Can change dialog');
INSERT INTO "auth_permission" VALUES(59,15,'delete_dialog','Can delete dialog');
INSERT INTO "auth_permission" VALUES(60,15,'view_dialog','Can view dialog');
INSERT INTO "auth_permission" VALUES(61,15,'resolve_question','Can resolve a critical Q4H');
INSERT INTO "auth_permission" VALUES(62,16,'add_apikey','Can add api key');
INSERT INTO "auth_permission" VALUES(63,16,'change_apikey','Can change api key');
INSERT INTO "auth_permission" VALUES(64,16,'delete_apikey','Can delete api key');
INSERT INTO "auth_permission" VALUES(65,16,'view_apikey','Can view api key');
INSERT INTO "auth_permission" VALUES(66,17,'add_artifact','Can add artifact');
INSERT INTO "auth_permission" VALUES(67,17,'change_artifact','Can change artifact');
INSERT INTO "auth_permission" VALUES(68,17,'delete_artifact','Can delete artifact');
INSERT INTO "auth_permission" VALUES(69,17,'view_artifact','Can view artifact');
INSERT INTO "auth_permission" VALUES(70,18,'add_event','Can add event');
INSERT INTO "auth_permission" VALUES(71,18,'change_event','Can change event');
INSERT INTO "auth_permission" VALUES(72,18,'delete_event','Can delete event');
INSERT INTO "auth_permission" VALUES(73,18,'view_event','Can view event');
INSERT INTO "auth_permission" VALUES(74,19,'add_generation','Can add generation');
INSERT INTO "auth_permission" VALUES(75,19,'change_generation','Can change generation');
INSERT INTO "auth_permission" VALUES(76,19,'delete_generation','Can delete generation');
INSERT INTO "auth_permission" VALUES(77,19,'view_generation','Can view generation');
INSERT INTO "auth_permission" VALUES(78,20,'add_personsettings','Can add person settings');
INSERT INTO "auth_permission" VALUES(79,20,'change_personsettings','Can change person settings');
INSERT INTO "auth_permission" VALUES(80,20,'delete_personsettings','Can delete person settings');
INSERT INTO "auth_permission" VALUES(81,20,'view_personsettings','Can view person settings');
INSERT INTO "auth_permission" VALUES(82,21,'add_question','Can add question');
INSERT INTO "auth_permission" VALUES(83,21,'change_question','Can change question');
INSERT INTO "auth_permission" VALUES(84,21,'delete_question','Can delete question');
INSERT INTO "auth_permission" VALUES(85,21,'view_question','Can view question');
INSERT INTO "auth_permission" VALUES(86,22,'add_reminder','Can add reminder');
INSERT INTO "auth_permission" VALUES(87,22,'change_reminder','Can change reminder');
INSERT INTO "auth_permission" VALUES(88,22,'delete_reminder','Can delete reminder');
INSERT INTO "auth_permission" VALUES(89,22,'view_reminder','Can view reminder');
INSERT INTO "auth_permission" VALUES(90,23,'add_round','Can add round');
INSERT INTO "auth_permission" VALUES(91,23,'change_round','Can change round');
INSERT INTO "auth_permission" VALUES(92,23,'delete_round','Can delete round');
INSERT INTO "auth_permission" VALUES(93,23,'view_round','Can view round');
INSERT INTO "auth_permission" VALUES(94,24,'add_sitesettings','Can add site settings');
INSERT INTO "auth_permission" VALUES(95,24,'change_sitesettings','Can change site settings');
INSERT INTO "auth_permission" VALUES(96,24,'delete_sitesettings','Can delete site settings');
INSERT INTO "auth_permission" VALUES(97,24,'view_sitesettings','Can view site settings');
INSERT INTO "auth_permission" VALUES(98,25,'add_turn','Can add turn');
INSERT INTO "auth_permission" VALUES(99,25,'change_turn','Can change turn');
INSERT INTO "auth_permission" VALUES(100,25,'delete_turn','Can delete turn');
INSERT INTO "auth_permission" VALUES(101,25,'view_turn','Can view turn');
INSERT INTO "auth_permission" VALUES(102,26,'add_client','Can add client');
INSERT INTO "auth_permission" VALUES(103,26,'change_client','Can change client');
INSERT INTO "auth_permission" VALUES(104,26,'delete_client','Can delete client');
INSERT INTO "auth_permission" VALUES(105,26,'view_client','Can view client');
CREATE TABLE "auth_user" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "password" varchar(128) NOT NULL, "last_login" datetime NULL, "is_superuser" bool NOT NULL, "username" varchar(150) NOT NULL UNIQUE, "last_name" varchar(150) NOT NULL, "email" varchar(254) NOT NULL, "is_staff" bool NOT NULL, "is_active" bool NOT NULL, "date_joined" datetime NOT NULL, "first_name" varchar(150) NOT NULL);
INSERT INTO "auth_user" VALUES(1,'!',NULL,0,'someone','','',0,1,'2026-11-25 21:40:15.530607','');
INSERT INTO "auth_user" VALUES(2,'!',NULL,0,'staff','','',1,1,'2026-11-25 21:42:01.643455','');
CREATE TABLE "auth_user_groups" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "group_id" integer NOT NULL REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "auth_user_groups" VALUES(1,2,1);
INSERT INTO "auth_user_groups" VALUES(2,2,2);
CREATE TABLE "auth_user_user_permissions" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "permission_id" integer NOT NULL REFERENCES "auth_permission" ("id") DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE "dialogs_agent" ("id" varchar(64) NOT NULL PRIMARY KEY, "name" varchar(120) NOT NULL, "provider" varchar(80) NOT NULL, "model" varchar(120) NOT NULL, "instructions" text NOT NULL, "tools" text NOT NULL CHECK ((JSON_VALID("tools") OR "tools" IS NULL)), "context_policy" varchar(16) NOT NULL, "critical_policy" varchar(12) NOT NULL, "context_limit" integer unsigned NULL CHECK ("context_limit" >= 0), "llm_type" varchar(40) NOT NULL, "priority" smallint unsigned NOT NULL CHECK ("priority" >= 0), "priority_areas" text NOT NULL CHECK ((JSON_VALID("priority_areas") OR "priority_areas" IS NULL)), "is_default" bool NOT NULL, "is_demo" bool NOT NULL, "is_listed" bool NOT NULL, "enabled" bool NOT NULL);
INSERT INTO "dialogs_agent" VALUES('demo','Guide','demo','guide','Show a newcomer how a long conversation is kept healthy.','[]','none','escalate',NULL,'',2,'[]',1,1,1,1);
INSERT INTO "dialogs_agent" VALUES('demo-asks','Asker','demo','asks','Ask a person before you decide anything.','[]','none','escalate',NULL,'',2,'[]',0,1,1,1);
INSERT INTO "dialogs_agent" VALUES('demo-autocompaction','Compactor','demo','compactor','Read logs with the person, hour by hour.','[]','autocompaction','escalate',NULL,'',2,'[]',0,1,1,1);
INSERT INTO "dialogs_agent" VALUES('demo-breaking','Breaker','demo','breaker','Keep the log of a voyage with the person, day by day.','[]','breaking','escalate',3500,'',2,'[]',0,1,1,1);
INSERT INTO "dialogs_agent" VALUES('demo-mindful','Mindful','demo','mindful','Plan with the person, and clear your mind when the runtime asks you to.','[]','none','escalate',NULL,'',2,'[]',0,1,1,1);
INSERT INTO "dialogs_agent" VALUES('demo-quiet','Quiet','demo','quiet','Answer, and report no usage.','[]','none','escalate',NULL,'',2,'[]',0,1,1,1);
INSERT INTO "dialogs_agent" VALUES('demo-retention','Keeper','demo','keeper','Plan repairs with the person, list by list.','[]','retention','escalate',NULL,'',2,'[]',0,1,1,1);
INSERT INTO "dialogs_agent" VALUES('demo-stubborn','Stubborn','demo','stubborn','Never forget anything, whoever asks.','[]','none','escalate',NULL,'',2,'[]',0,1,1,1);
CREATE TABLE "dialogs_apikey" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "digest" varchar(64) NOT NULL UNIQUE, "last_four" varchar(4) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "revoked_at" datetime NULL, "owner_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_apikey" VALUES(1,'apikey command','abf70b58a6ffb7a4ce6f3daf14a5d43e8ec0f166114b3e21b3577ce7cac5391a','1Jqg','2026-11-25 21:41:03.911382',NULL,1);
CREATE TABLE "dialogs_artifact" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "tool_call_id" varchar(120) NOT NULL, "text" text NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_artifact" VALUES(1,'tool_call_id-0','text 0: it''s "quoted"
Grüße, 世界','2026-11-20 12:30:00','8a7654b3de0f419b92487d0ad73ad1a7');
INSERT INTO "dialogs_artifact" VALUES(2,'tool_call_id-1','text 1: it''s "quoted"
Grüße, 世界','2026-11-21 12:30:00','b48e36d3200741c89e4fc55198f2c7ae');
CREATE TABLE "dialogs_client" ("dialog_id" char(32) NOT NULL PRIMARY KEY REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "said" varchar(64) NOT NULL, "instructions" text NOT NULL, "tools" text NOT NULL CHECK ((JSON_VALID("tools") OR "tools" IS NULL)), "required_tool" varchar(120) NOT NULL, "key_id" bigint NULL REFERENCES "dialogs_apikey" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_client" VALUES('8a7654b3de0f419b92487d0ad73ad1a7','said-0','instructions 0: it''s "quoted"
Grüße, 世界','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','required_tool-0',1);
INSERT INTO "dialogs_client" VALUES('b48e36d3200741c89e4fc55198f2c7ae','said-1','instructions 1: it''s "quoted"
Grüße, 世界','[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]','required_tool-1',NULL);
CREATE TABLE "dialogs_dialog" ("id" char(32) NOT NULL PRIMARY KEY, "title" varchar(200) NOT NULL, "provider" varchar(80) NOT NULL, "model" varchar(120) NOT NULL, "round_number" integer unsigned NOT NULL CHECK ("round_number" >= 0), "state" varchar(10) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "active_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "closed_at" datetime NULL, "last_turn_seq" integer unsigned NOT NULL CHECK ("last_turn_seq" >= 0), "last_position" integer unsigned NOT NULL CHECK ("last_position" >= 0), "last_event_seq" integer unsigned NOT NULL CHECK ("last_event_seq" >= 0), "history_version" integer unsigned NOT NULL CHECK ("history_version" >= 0), "answering_seq" integer unsigned NULL CHECK ("answering_seq" >= 0), "continuing" bool NOT NULL, "requested_rewrite" varchar(16) NOT NULL, "requested_package" text NOT NULL, "stop_requested" bool NOT NULL, "failure" text NOT NULL, "epoch" integer unsigned NOT NULL CHECK ("epoch" >= 0), "lease_owner" varchar(120) NOT NULL, "lease_until" datetime NULL, "wake_at" datetime NULL, "crashes" smallint unsigned NOT NULL CHECK ("crashes" >= 0), "tries" smallint unsigned NOT NULL CHECK ("tries" >= 0), "generations_for_message" integer unsigned NOT NULL CHECK ("generations_for_message" >= 0), "running_call" varchar(120) NOT NULL, "report" varchar(12) NOT NULL, "prompt_tokens" integer unsigned NULL CHECK ("prompt_tokens" >= 0), "completion_tokens" integer unsigned NULL CHECK ("completion_tokens" >= 0), "total_tokens" integer unsigned NULL CHECK ("total_tokens" >= 0), "overflowed" bool NOT NULL, "changed_since_rewrite" bool NOT NULL, "restarts" smallint unsigned NOT NULL CHECK ("restarts" >= 0), "calibration" real NULL, "kept_since_guidance" integer unsigned NULL CHECK ("kept_since_guidance" >= 0), "guided_generations" smallint unsigned NOT NULL CHECK ("guided_generations" >= 0), "failed_clears" smallint unsigned NOT NULL CHECK ("failed_clears" >= 0), "clear_episode" integer unsigned NOT NULL CHECK ("clear_episode" >= 0), "clear_unproven" bool NOT NULL, "agent_id" varchar(64) NOT NULL REFERENCES "dialogs_agent" ("id") DEFERRABLE INITIALLY DEFERRED, "owner_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "archived_at" datetime NULL);
INSERT INTO "dialogs_dialog" VALUES('8a7654b3de0f419b92487d0ad73ad1a7','With demo-asks','','',1,'waiting','2026-11-25 21:41:12.619464','2026-11-25 21:41:14.027164',NULL,3,2,11,0,1,0,'','',0,'',1,'','2026-11-25 21:41:25.342599',NULL,0,0,1,'','reported',620,55,675,0,1,0,NULL,NULL,0,0,0,0,'demo-asks',1,NULL);
INSERT INTO "dialogs_dialog" VALUES('b48e36d3200741c89e4fc55198f2c7ae','With demo','','',2,'idle','2026-11-25 21:41:10.880032','2026-11-25 21:41:20.012026',NULL,4,4,22,1,NULL,0,'','',0,'',2,'','2026-11-25 21:41:31.868160',NULL,0,0,1,'','awaiting',NULL,NULL,NULL,0,1,0,NULL,NULL,0,0,0,0,'demo',1,NULL);
INSERT INTO "dialogs_dialog" VALUES('e7ba04efb07a4bf3a727d90c0b13f633','With demo-retention','','',1,'idle','2026-11-25 21:41:13.540222','2026-11-25 21:41:19.059242',NULL,4,4,17,0,NULL,0,'','',0,'',1,'','2026-11-25 21:41:29.575334',NULL,0,0,1,'','reported',1107,229,1336,0,1,0,8.63146440470201059547e-01,NULL,0,0,0,0,'demo-retention',1,NULL);
CREATE TABLE "dialogs_event" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "seq" integer unsigned NOT NULL CHECK ("seq" >= 0), "type" varchar(24) NOT NULL, "data" text NOT NULL CHECK ((JSON_VALID("data") OR "data" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "more" text DEFAULT '' NOT NULL, CONSTRAINT "event_seq_unique" UNIQUE ("dialog_id", "seq"));
INSERT INTO "dialogs_event" VALUES(1,1,'reminder','{"count": 1}','2026-11-25 21:41:11.288847','b48e36d3200741c89e4fc55198f2c7ae',',272,["turn",1],["state","queued",""],859,["turn",2],1913,["state","generating",""],2162,["generation",1,"reply",1,"running"],4123,["generation",1,"reply",1,"kept"],["turn",3],["health","healthy",null,2498,673,3171,6500,"context_length",3500,5850,0.3843076923076923,0.7137142857142857],["turn",1],["turn",2],6391,["generation",4,"reply",1,"running"],7644,["generation",4,"reply",1,"kept"],["turn",4],["health","healthy",null,3180,848,4028,6500,"context_length",3500,5850,0.48923076923076925,0.9085714285714286],["turn",2],["state","idle",""],8530,["state","queued",""],8572,["state","generating",""],8668,["round",{"number":2,"cause":"person"}],["health","unknown","awaiting_report",null,null,null,6500,"context_length",3500,5850,null,null]');
INSERT INTO "dialogs_event" VALUES(2,1,'reminder','{"count": 1}','2026-11-25 21:41:12.933087','8a7654b3de0f419b92487d0ad73ad1a7',',307,["turn",1],["state","queued",""],398,["state","generating",""],510,["turn",2],541,["generation",2,"reply",1,"running"],870,["generation",2,"reply",1,"kept"],["turn",3],["health","healthy",null,620,55,675,8000,"context_length",4000,7200,0.0775,0.155],1075,["question",{"id":"0d394fcd-0968-45bb-888f-1522a903fab3","kind":"question","state":"open"}],["state","waiting",""]');
INSERT INTO "dialogs_event" VALUES(3,1,'reminder','{"count": 1}','2026-11-25 21:41:13.650547','e7ba04efb07a4bf3a727d90c0b13f633',',360,["turn",1],["state","queued",""],465,["state","generating",""],561,["turn",2],4001,["generation",3,"reply",1,"running"],4757,["generation",3,"reply",1,"kept"],["turn",3],["health","healthy",null,828,276,1104,2600,"context_length",2200,2340,0.31846153846153846,0.37636363636363634],["turn",1],["turn",2],4865,["generation",5,"reply",1,"running"],5393,["generation",5,"reply",1,"kept"],["turn",4],["health","healthy",null,1107,229,1336,2600,"context_length",2200,2340,0.4257692307692308,0.5031818181818182],["turn",2],["state","idle",""]');
INSERT INTO "dialogs_event" VALUES(4,22,'state','{"state": "idle", "failure": ""}','2026-11-25 21:41:20.008796','b48e36d3200741c89e4fc55198f2c7ae','');
CREATE TABLE "dialogs_generation" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "round_number" integer unsigned NOT NULL CHECK ("round_number" >= 0), "purpose" varchar(12) NOT NULL, "outcome" varchar(10) NOT NULL, "attempt" smallint unsigned NOT NULL CHECK ("attempt" >= 0), "epoch" integer unsigned NOT NULL CHECK ("epoch" >= 0), "provider" varchar(80) NOT NULL, "model" varchar(120) NOT NULL, "answers_seq" integer unsigned NULL CHECK ("answers_seq" >= 0), "guided" bool NOT NULL, "clear_episode" integer unsigned NULL CHECK ("clear_episode" >= 0), "prompt_tokens" integer unsigned NULL CHECK ("prompt_tokens" >= 0), "completion_tokens" integer unsigned NULL CHECK ("completion_tokens" >= 0), "total_tokens" integer unsigned NULL CHECK ("total_tokens" >= 0), "frame" varchar(32) NOT NULL, "base" varchar(40) NOT NULL, "request_chars" integer unsigned NOT NULL CHECK ("request_chars" >= 0), "est_prompt_tokens" integer unsigned NULL CHECK ("est_prompt_tokens" >= 0), "cursor" varchar(200) NOT NULL, "finish_reason" varchar(40) NOT NULL, "skipped_calls" smallint unsigned NOT NULL CHECK ("skipped_calls" >= 0), "error_kind" varchar(24) NOT NULL, "error" text NOT NULL, "started_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "first_token_ms" integer unsigned NULL CHECK ("first_token_ms" >= 0), "finished_at" datetime NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_generation" VALUES(1,1,'reply','kept',1,1,'demo','guide',1,0,NULL,2498,673,3171,'81345b91e7292a075a9dfb5765e921e6','1:0',2571,NULL,'1','stop',0,'','','2026-11-25 21:41:13.436955',22,'2026-11-25 21:41:15.091239','b48e36d3200741c89e4fc55198f2c7ae');
INSERT INTO "dialogs_generation" VALUES(2,1,'reply','kept',1,1,'demo','asks',1,0,NULL,620,55,675,'2c83017fe3831a1e483f5022de34cf53','1:0',2555,NULL,'1','tool_calls',0,'','','2026-11-25 21:41:13.467102',18,'2026-11-25 21:41:13.707477','8a7654b3de0f419b92487d0ad73ad1a7');
INSERT INTO "dialogs_generation" VALUES(3,1,'reply','kept',1,1,'demo','keeper',1,0,NULL,828,276,1104,'40782d69c8ae7fb4c4219da47731a5c6','1:0',2558,949,'1','stop',0,'','','2026-11-25 21:41:17.642044',18,'2026-11-25 21:41:18.375161','e7ba04efb07a4bf3a727d90c0b13f633');
INSERT INTO "dialogs_generation" VALUES(4,1,'reply','kept',1,1,'demo','guide',2,0,NULL,3180,848,4028,'81345b91e7292a075a9dfb5765e921e6','1:0',3253,NULL,'2','stop',0,'','','2026-11-25 21:41:17.669225',59,'2026-11-25 21:41:18.924553','b48e36d3200741c89e4fc55198f2c7ae');
INSERT INTO "dialogs_generation" VALUES(5,1,'reply','kept',1,1,'demo','keeper',2,0,NULL,1107,229,1336,'40782d69c8ae7fb4c4219da47731a5c6','1:0',3395,1286,'2','stop',0,'','','2026-11-25 21:41:18.504977',15,'2026-11-25 21:41:19.008327','e7ba04efb07a4bf3a727d90c0b13f633');
CREATE TABLE "dialogs_personsettings" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "theme" varchar(8) NOT NULL, "notifications" bool NOT NULL, "show_breaking_progress" bool NOT NULL, "progress_detail" varchar(8) NOT NULL, "auto_hide_seconds" smallint unsigned NOT NULL CHECK ("auto_hide_seconds" >= 0), "highlight_p1" bool NOT NULL, "user_id" integer NOT NULL UNIQUE REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "auto_hide_1_to_10" CHECK ("auto_hide_seconds" BETWEEN 1 AND 10));
INSERT INTO "dialogs_personsettings" VALUES(1,'system',0,0,'minimal',1,0,1);
INSERT INTO "dialogs_personsettings" VALUES(2,'light',1,1,'normal',2,1,2);
CREATE TABLE "dialogs_question" ("id" char(32) NOT NULL PRIMARY KEY, "kind" varchar(24) NOT NULL, "state" varchar(10) NOT NULL, "text" text NOT NULL, "tool_call_id" varchar(120) NOT NULL, "clear_episode" integer unsigned NULL CHECK ("clear_episode" >= 0), "draft" text NOT NULL, "answer" text NOT NULL, "action" varchar(16) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "resolved_at" datetime NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "resolved_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_question" VALUES('0d394fcd096845bb888f1522a903fab3','question','open','What shall we call the new release: ''Heron'' or ''Kingfisher''? Another name is fine, too.','call_2_1',NULL,'','','','2026-11-25 21:41:13.939129',NULL,'8a7654b3de0f419b92487d0ad73ad1a7',NULL);
CREATE TABLE "dialogs_reminder" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "position" smallint unsigned NOT NULL CHECK ("position" >= 0), "text" text NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_reminder" VALUES(1,0,'Name the port.','2026-11-25 21:41:11.279535','b48e36d3200741c89e4fc55198f2c7ae');
INSERT INTO "dialogs_reminder" VALUES(2,0,'Name the port.','2026-11-25 21:41:12.917291','8a7654b3de0f419b92487d0ad73ad1a7');
INSERT INTO "dialogs_reminder" VALUES(3,0,'Name the port.','2026-11-25 21:41:13.647021','e7ba04efb07a4bf3a727d90c0b13f633');
CREATE TABLE "dialogs_round" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "number" integer unsigned NOT NULL CHECK ("number" >= 0), "cause" varchar(12) NOT NULL, "package" text NOT NULL, "carried" text NOT NULL CHECK ((JSON_VALID("carried") OR "carried" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "round_number_unique" UNIQUE ("dialog_id", "number"));
INSERT INTO "dialogs_round" VALUES(1,1,'start','','[]','2026-11-25 21:41:10.939410','b48e36d3200741c89e4fc55198f2c7ae');
INSERT INTO "dialogs_round" VALUES(2,1,'start','','[]','2026-11-25 21:41:12.635110','8a7654b3de0f419b92487d0ad73ad1a7');
INSERT INTO "dialogs_round" VALUES(3,1,'start','','[]','2026-11-25 21:41:13.544143','e7ba04efb07a4bf3a727d90c0b13f633');
INSERT INTO "dialogs_round" VALUES(4,2,'person','What was said.','[]','2026-11-25 21:41:19.920643','b48e36d3200741c89e4fc55198f2c7ae');
CREATE TABLE "dialogs_sitesettings" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "singleton" bool NOT NULL UNIQUE, "keep_discarded_outputs" bool NOT NULL, "webhook_url" varchar(200) NOT NULL, "pruning_agent_id" varchar(64) NULL REFERENCES "dialogs_agent" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_sitesettings" VALUES(1,0,0,'https://example.org/0','demo');
INSERT INTO "dialogs_sitesettings" VALUES(2,1,1,'https://example.org/1',NULL);
CREATE TABLE "dialogs_turn" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "seq" integer unsigned NOT NULL CHECK ("seq" >= 0), "position" integer unsigned NULL CHECK ("position" >= 0), "round_number" integer unsigned NOT NULL CHECK ("round_number" >= 0), "role" varchar(10) NOT NULL, "status" varchar(12) NOT NULL, "text" text NOT NULL, "tool_calls" text NULL CHECK ((JSON_VALID("tool_calls") OR "tool_calls" IS NULL)), "tool_call_id" varchar(120) NOT NULL, "tool_name" varchar(120) NOT NULL, "provider_items" text NULL CHECK ((JSON_VALID("provider_items") OR "provider_items" IS NULL)), "client_message_id" varchar(120) NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "generation_id" bigint NULL REFERENCES "dialogs_generation" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "turn_seq_unique" UNIQUE ("dialog_id", "seq"), CONSTRAINT "turn_client_message_unique" UNIQUE ("dialog_id", "client_message_id"));
INSERT INTO "dialogs_turn" VALUES(1,1,1,1,'user','answered','Message 0',NULL,'','',NULL,'m0','2026-11-25 21:41:11.551189','b48e36d3200741c89e4fc55198f2c7ae',NULL);
INSERT INTO "dialogs_turn" VALUES(2,2,3,1,'user','answered','Message 1',NULL,'','',NULL,'m1','2026-11-25 21:41:12.097891','b48e36d3200741c89e4fc55198f2c7ae',NULL);
INSERT INTO "dialogs_turn" VALUES(3,1,1,1,'user','answering','Message 0',NULL,'','',NULL,'m0','2026-11-25 21:41:13.235673','8a7654b3de0f419b92487d0ad73ad1a7',NULL);
INSERT INTO "dialogs_turn" VALUES(4,2,NULL,1,'user','queued','Message 1',NULL,'','',NULL,'m1','2026-11-25 21:41:13.407921','8a7654b3de0f419b92487d0ad73ad1a7',NULL);
INSERT INTO "dialogs_turn" VALUES(5,3,2,1,'assistant','complete','Hello, I am **Asker**. I can do a lot by myself, but some things only a person can decide. So before I go on:
','[{"id": "call_2_1", "name": "ask_human", "arguments": "{\"question\":\"What shall we call the new release: ''Heron'' or ''Kingfisher''? Another name is fine, too.\"}"}]','','',NULL,NULL,'2026-11-25 21:41:13.730810','8a7654b3de0f419b92487d0ad73ad1a7',2);
INSERT INTO "dialogs_turn" VALUES(6,1,1,1,'user','answered','Message 0',NULL,'','',NULL,'m0','2026-11-25 21:41:14.008002','e7ba04efb07a4bf3a727d90c0b13f633',NULL);
INSERT INTO "dialogs_turn" VALUES(7,2,3,1,'user','answered','Message 1',NULL,'','',NULL,'m1','2026-11-25 21:41:14.183793','e7ba04efb07a4bf3a727d90c0b13f633',NULL);
INSERT INTO "dialogs_turn" VALUES(8,3,2,1,'assistant','complete','Welcome to **Dominds**! It lets people and agents talk for as long as they like, and takes care of what long talks do to a
model: the fuller its context, the worse it works.

Look at the indicator at the top of this page. It shows how many tokens my last request took, as *reported by the
provider* and never guessed, and how much of my window that is:

| colour | meaning |
|---|---|
| green | all is well |
| yellow | larger than is good for the work |
| red | nearly full |
| gray | not known, and so not called healthy |

My window is tiny on purpose: 6,500 tokens, yellow above 3,500, red above 5,850. A few messages fill it.

Say anything to go on. **next** will do.
',NULL,'','',NULL,NULL,'2026-11-25 21:41:15.132844','b48e36d3200741c89e4fc55198f2c7ae',1);
INSERT INTO "dialogs_turn" VALUES(9,3,2,1,'assistant','complete','I am **Keeper**. Each message of ours gets a score from 0 to 100, for how recent it is, who said it, and whether it speaks of failures
or tools. Above 80 % of my 2,600 tokens the lowest scores leave my sight.

Let us plan repairs. List 1:

```text
1.1  test    the pump         5.9 h   349.00  open
1.2  paint   the north gate   4.2 h   158.00  open
1.3  seal    the old sign     9.5 h   468.00  done
1.4  label   window B2        1.0 h    37.00  done
1.5  sand    the pump         2.8 h   192.00  open
1.6  seal    the fence post   5.9 h    78.00  done
1.7  clean   socket 7         3.2 h    17.00  open
1.8  measure the shed roof    8.1 h    42.00  open
1.9  order   the old sign     5.0 h    38.00  open
1.10 test    two benches      8.9 h   275.00  open
1.11 measure the shed roof    1.0 h    41.00  open
```

Say **next**.
',NULL,'','',NULL,NULL,'2026-11-25 21:41:18.382789','e7ba04efb07a4bf3a727d90c0b13f633',3);
INSERT INTO "dialogs_turn" VALUES(10,4,4,1,'assistant','complete','Good. While you read this, your message was stored before it was accepted, a worker took the dialog, asked me, and wrote
down the answer, its usage and the state of my health in one go. If that worker had died, another would have taken over.

A newcomer''s path through the code, for those who like to read it:

```python
def drive(dialog_id):
    while dialog.owes_work:
        match decide(policies, context):
            case Proceed() as plan: generate(plan)
            case Rewrite() as decision: rewrite(decision)
            case Suspend() as decision: ask_a_human(decision)
```

Policies *decide*, the driver *performs*. That is why there are several ways to treat a long context, and you may pick one
for each agent: none, **breaking**, **retention**, or **autocompaction** for local models.

Say **next**, and keep an eye on the colour.
',NULL,'','',NULL,NULL,'2026-11-25 21:41:18.926054','b48e36d3200741c89e4fc55198f2c7ae',4);
INSERT INTO "dialogs_turn" VALUES(11,4,4,1,'assistant','complete','List 2. Remember this one: *the pump failed twice, error E17; do not switch it on before the seal is replaced.*

```text
2.1  seal    the shed roof    4.2 h    39.00  open
2.2  oil     the north gate   9.3 h    82.00  done
2.3  test    the fence post   9.6 h   426.00  open
2.4  test    the pump         2.4 h   330.00  done
2.5  label   the rain barrel  1.6 h   442.00  done
2.6  label   hinge 4          8.2 h   125.00  open
2.7  order   window B2        1.1 h   181.00  open
2.8  order   the north gate   5.8 h   357.00  done
2.9  test    the pump         5.3 h    53.00  open
2.10 paint   the shed roof    5.3 h   440.00  open
2.11 replace two benches      4.6 h   178.00  open
```
',NULL,'','',NULL,NULL,'2026-11-25 21:41:19.010239','e7ba04efb07a4bf3a727d90c0b13f633',5);
CREATE TABLE "django_admin_log" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "object_id" text NULL, "object_repr" varchar(200) NOT NULL, "action_flag" smallint unsigned NOT NULL CHECK ("action_flag" >= 0), "change_message" text NOT NULL, "content_type_id" integer NULL REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "action_time" datetime NOT NULL);
CREATE TABLE "django_content_type" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "app_label" varchar(100) NOT NULL, "model" varchar(100) NOT NULL);
INSERT INTO "django_content_type" VALUES(1,'admin','logentry');
INSERT INTO "django_content_type" VALUES(2,'auth','permission');
INSERT INTO "django_content_type" VALUES(3,'auth','group');
INSERT INTO "django_content_type" VALUES(4,'auth','user');
INSERT INTO "django_content_type" VALUES(5,'contenttypes','contenttype');
INSERT INTO "django_content_type" VALUES(6,'sessions','session');
INSERT INTO "django_content_type" VALUES(7,'health','healthsnapshot');
INSERT INTO "django_content_type" VALUES(8,'remediation','contextsettings');
INSERT INTO "django_content_type" VALUES(9,'remediation','proposal');
INSERT INTO "django_content_type" VALUES(10,'remediation','remediationrun');
INSERT INTO "django_content_type" VALUES(11,'remediation','removedunit');
INSERT INTO "django_content_type" VALUES(12,'remediation','cleanuptask');
INSERT INTO "django_content_type" VALUES(13,'remediation','contextevent');
INSERT INTO "django_content_type" VALUES(14,'dialogs','agent');
INSERT INTO "django_content_type" VALUES(15,'dialogs','dialog');
INSERT INTO "django_content_type" VALUES(16,'dialogs','apikey');
INSERT INTO "django_content_type" VALUES(17,'dialogs','artifact');
INSERT INTO "django_content_type" VALUES(18,'dialogs','event');
INSERT INTO "django_content_type" VALUES(19,'dialogs','generation');
INSERT INTO "django_content_type" VALUES(20,'dialogs','personsettings');
INSERT INTO "django_content_type" VALUES(21,'dialogs','question');
INSERT INTO "django_content_type" VALUES(22,'dialogs','reminder');
INSERT INTO "django_content_type" VALUES(23,'dialogs','round');
INSERT INTO "django_content_type" VALUES(24,'dialogs','sitesettings');
INSERT INTO "django_content_type" VALUES(25,'dialogs','turn');
INSERT INTO "django_content_type" VALUES(26,'dialogs','client');
CREATE TABLE "django_migrations" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "app" varchar(255) NOT NULL, "name" varchar(255) NOT NULL, "applied" datetime NOT NULL);
INSERT INTO "django_migrations" VALUES(1,'contenttypes','0001_initial','2026-11-25 21:43:32.859938');
INSERT INTO "django_migrations" VALUES(2,'auth','0001_initial','2026-11-25 21:43:32.985805');
INSERT INTO "django_migrations" VALUES(3,'admin','0001_initial','2026-11-25 21:43:33.051751');
INSERT INTO "django_migrations" VALUES(4,'admin','0002_logentry_remove_auto_add','2026-11-25 21:43:33.104195');
INSERT INTO "django_migrations" VALUES(5,'admin','0003_logentry_add_action_flag_choices','2026-11-25 21:43:33.154873');
INSERT INTO "django_migrations" VALUES(6,'contenttypes','0002_remove_content_type_name','2026-11-25 21:43:33.262258');
INSERT INTO "django_migrations" VALUES(7,'auth','0002_alter_permission_name_max_length','2026-11-25 21:43:33.329314');
INSERT INTO "django_migrations" VALUES(8,'auth','0003_alter_user_email_max_length','2026-11-25 21:43:33.382181');
INSERT INTO "django_migrations" VALUES(9,'auth','0004_alter_user_username_opts','2026-11-25 21:43:33.429509');
INSERT INTO "django_migrations" VALUES(10,'auth','0005_alter_user_last_login_null','2026-11-25 21:43:33.497997');
INSERT INTO "django_migrations" VALUES(11,'auth','0006_require_contenttypes_0002','2026-11-25 21:43:33.523492');
INSERT INTO "django_migrations" VALUES(12,'auth','0007_alter_validators_add_error_messages','2026-11-25 21:43:33.571989');
INSERT INTO "django_migrations" VALUES(13,'auth','0008_alter_user_username_max_length','2026-11-25 21:43:33.639333');
INSERT INTO "django_migrations" VALUES(14,'auth','0009_alter_user_last_name_max_length','2026-11-25 21:43:33.704822');
INSERT INTO "django_migrations" VALUES(15,'auth','0010_alter_group_name_max_length','2026-11-25 21:43:33.760908');
INSERT INTO "django_migrations" VALUES(16,'auth','0011_update_proxy_permissions','2026-11-25 21:43:33.825975');
INSERT INTO "django_migrations" VALUES(17,'auth','0012_alter_user_first_name_max_length','2026-11-25 21:43:33.893176');
INSERT INTO "django_migrations" VALUES(18,'dialogs','0001_initial','2026-11-25 21:43:39.467989');
INSERT INTO "django_migrations" VALUES(19,'dialogs','0002_archive_dialogs','2026-11-25 21:43:39.761784');
INSERT INTO "django_migrations" VALUES(20,'dialogs','0003_events_that_follow_in_one_row','2026-11-25 21:43:39.945225');
INSERT INTO "django_migrations" VALUES(21,'dialogs','0004_indexes_that_updates_leave_alone','2026-11-25 21:43:40.345641');
INSERT INTO "django_migrations" VALUES(22,'dialogs','0005_plural_of_settings','2026-11-25 21:43:40.504978');
INSERT INTO "django_migrations" VALUES(23,'health','0001_initial','2026-11-25 21:43:40.798605');
INSERT INTO "django_migrations" VALUES(24,'remediation','0001_initial','2026-11-25 21:43:42.305454');
INSERT INTO "django_migrations" VALUES(25,'remediation','0002_plural_of_settings','2026-11-25 21:43:42.369916');
INSERT INTO "django_migrations" VALUES(26,'sessions','0001_initial','2026-11-25 21:43:42.412100');
CREATE TABLE "django_session" ("session_key" varchar(40) NOT NULL PRIMARY KEY, "session_data" text NOT NULL, "expire_date" datetime NOT NULL);
CREATE TABLE "health_healthsnapshot" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "prompt_tokens" integer unsigned NULL CHECK ("prompt_tokens" >= 0), "completion_tokens" integer unsigned NULL CHECK ("completion_tokens" >= 0), "total_tokens" integer unsigned NULL CHECK ("total_tokens" >= 0), "model_context_limit" integer unsigned NULL CHECK ("model_context_limit" >= 0), "limit_source" varchar(24) NOT NULL, "optimal_max_tokens" integer unsigned NOT NULL CHECK ("optimal_max_tokens" >= 0), "critical_max_tokens" integer unsigned NULL CHECK ("critical_max_tokens" >= 0), "hard_util" real NULL, "optimal_util" real NULL, "level" varchar(8) NOT NULL, "reason" varchar(24) NOT NULL, "generation_id" bigint NOT NULL UNIQUE REFERENCES "dialogs_generation" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "snapshot_unknown_has_reason" CHECK ((("level" = 'unknown' OR "reason" = '') AND 1 = (CASE WHEN "level" = 'unknown' THEN 1 ELSE 0 END + CASE WHEN "reason" = '' THEN 1 ELSE 0 END))), CONSTRAINT "snapshot_no_zero_prompt" CHECK (NOT ("prompt_tokens" = 0 AND "prompt_tokens" IS NOT NULL)));
INSERT INTO "health_healthsnapshot" VALUES(1,620,55,675,8000,'context_length',4000,7200,0.0775,0.155,'healthy','',2);
INSERT INTO "health_healthsnapshot" VALUES(2,2498,673,3171,6500,'context_length',3500,5850,3.84307692307692294608e-01,7.13714285714285745498e-01,'healthy','',1);
INSERT INTO "health_healthsnapshot" VALUES(3,828,276,1104,2600,'context_length',2200,2340,3.18461538461538462563e-01,3.76363636363636344661e-01,'healthy','',3);
INSERT INTO "health_healthsnapshot" VALUES(4,3180,848,4028,6500,'context_length',3500,5850,4.89230769230769246824e-01,9.08571428571428585385e-01,'healthy','',4);
INSERT INTO "health_healthsnapshot" VALUES(5,1107,229,1336,2600,'context_length',2200,2340,4.25769230769230788702e-01,5.03181818181818174551e-01,'healthy','',5);
CREATE TABLE "remediation_cleanuptask" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "reason" text NOT NULL, "state" varchar(4) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "done_at" datetime NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "done_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "remediation_cleanuptask" VALUES(1,'reason 0: it''s "quoted"
Grüße, 世界','open','2026-11-20 12:30:00','2026-11-20 12:30:00','8a7654b3de0f419b92487d0ad73ad1a7',1);
INSERT INTO "remediation_cleanuptask" VALUES(2,'reason 1: it''s "quoted"
Grüße, 世界','done','2026-11-21 12:30:00',NULL,'b48e36d3200741c89e4fc55198f2c7ae',NULL);
CREATE TABLE "remediation_contextevent" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "code" varchar(24) NOT NULL, "message" text NOT NULL, "est_tokens" integer unsigned NULL CHECK ("est_tokens" >= 0), "limit" integer unsigned NULL CHECK ("limit" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "remediation_contextevent" VALUES(1,'CONTEXT_WARNING','message 0: it''s "quoted"
Grüße, 世界',1,1,'2026-11-20 12:30:00','8a7654b3de0f419b92487d0ad73ad1a7');
INSERT INTO "remediation_contextevent" VALUES(2,'CONTEXT_OVER_HIT','message 1: it''s "quoted"
Grüße, 世界',NULL,NULL,'2026-11-21 12:30:00','b48e36d3200741c89e4fc55198f2c7ae');
CREATE TABLE "remediation_contextsettings" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "singleton" bool NOT NULL UNIQUE, "config" text NOT NULL CHECK ((JSON_VALID("config") OR "config" IS NULL)));
INSERT INTO "remediation_contextsettings" VALUES(1,0,'[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]');
INSERT INTO "remediation_contextsettings" VALUES(2,1,'[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]');
CREATE TABLE "remediation_proposal" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "kind" varchar(16) NOT NULL, "change" text NOT NULL CHECK ((JSON_VALID("change") OR "change" IS NULL)), "grounds" text NOT NULL, "state" varchar(8) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "decided_at" datetime NULL, "agent_id" varchar(64) NULL REFERENCES "dialogs_agent" ("id") DEFERRABLE INITIALLY DEFERRED, "decided_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "remediation_proposal" VALUES(1,'limit','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','grounds 0: it''s "quoted"
Grüße, 世界','open','2026-11-20 12:30:00','2026-11-20 12:30:00','demo',1);
INSERT INTO "remediation_proposal" VALUES(2,'order','[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]','grounds 1: it''s "quoted"
Grüße, 世界','accepted','2026-11-21 12:30:00',NULL,NULL,NULL);
CREATE TABLE "remediation_remediationrun" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "round_number" integer unsigned NOT NULL CHECK ("round_number" >= 0), "policy" varchar(16) NOT NULL, "reason" varchar(200) NOT NULL, "steps" text NOT NULL CHECK ((JSON_VALID("steps") OR "steps" IS NULL)), "est_before" integer unsigned NOT NULL CHECK ("est_before" >= 0), "est_after" integer unsigned NOT NULL CHECK ("est_after" >= 0), "est_source" varchar(12) NOT NULL, "limit" integer unsigned NULL CHECK ("limit" >= 0), "base_position" integer unsigned NOT NULL CHECK ("base_position" >= 0), "view" text NOT NULL CHECK ((JSON_VALID("view") OR "view" IS NULL)), "removed" text NOT NULL CHECK ((JSON_VALID("removed") OR "removed" IS NULL)), "summary" text NOT NULL, "ledger" text NOT NULL CHECK ((JSON_VALID("ledger") OR "ledger" IS NULL)), "recovered" bool NOT NULL, "coherence" real NULL, "millis" real NOT NULL, "reward" real NULL, "reward_record" text NULL CHECK ((JSON_VALID("reward_record") OR "reward_record" IS NULL)), "undone_at" datetime NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "undone_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "remediation_remediationrun" VALUES(1,1,'autocompaction','reason-0','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]',1,1,'est_source-0',1,1,'[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','summary 0: it''s "quoted"
Grüße, 世界','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]',0,0.5,0.5,0.5,'[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','2026-11-20 12:30:00','2026-11-20 12:30:00','8a7654b3de0f419b92487d0ad73ad1a7',1);
INSERT INTO "remediation_remediationrun" VALUES(2,2,'breaking','reason-1','[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]',2,2,'est_source-1',NULL,2,'[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]','[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]','summary 1: it''s "quoted"
Grüße, 世界','[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]',1,NULL,1.5,NULL,NULL,NULL,'2026-11-21 12:30:00','b48e36d3200741c89e4fc55198f2c7ae',NULL);
CREATE TABLE "remediation_removedunit" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "unit_id" varchar(64) NOT NULL, "kind" varchar(16) NOT NULL, "role" varchar(12) NOT NULL, "est_tokens" integer unsigned NOT NULL CHECK ("est_tokens" >= 0), "text" text NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "remediation_remediationrun" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "remediation_removedunit" VALUES(1,'unit_id-0','kind-0','role-0',1,'text 0: it''s "quoted"
Grüße, 世界','8a7654b3de0f419b92487d0ad73ad1a7',1);
INSERT INTO "remediation_removedunit" VALUES(2,'unit_id-1','kind-1','role-1',2,'text 1: it''s "quoted"
Grüße, 世界','b48e36d3200741c89e4fc55198f2c7ae',2);
CREATE UNIQUE INDEX "auth_group_permissions_group_id_permission_id_0cd325b0_uniq" ON "auth_group_permissions" ("group_id", "permission_id");
CREATE INDEX "auth_group_permissions_group_id_b120cbf9" ON "auth_group_permissions" ("group_id");
CREATE INDEX "auth_group_permissions_permission_id_84c5c92e" ON "auth_group_permissions" ("permission_id");
CREATE UNIQUE INDEX "auth_user_groups_user_id_group_id_94350c0c_uniq" ON "auth_user_groups" ("user_id", "group_id");
CREATE INDEX "auth_user_groups_user_id_6a12ed8b" ON "auth_user_groups" ("user_id");
CREATE INDEX "auth_user_groups_group_id_97559544" ON "auth_user_groups" ("group_id");
CREATE UNIQUE INDEX "auth_user_user_permissions_user_id_permission_id_14a6b632_uniq" ON "auth_user_user_permissions" ("user_id", "permission_id");
CREATE INDEX "auth_user_user_permissions_user_id_a95ead1b" ON "auth_user_user_permissions" ("user_id");
CREATE INDEX "auth_user_user_permissions_permission_id_1fbb5f2c" ON "auth_user_user_permissions" ("permission_id");
CREATE INDEX "django_admin_log_content_type_id_c4bce8eb" ON "django_admin_log" ("content_type_id");
CREATE INDEX "django_admin_log_user_id_c564eba6" ON "django_admin_log" ("user_id");
CREATE UNIQUE INDEX "django_content_type_app_label_model_76bd3d3b_uniq" ON "django_content_type" ("app_label", "model");
CREATE UNIQUE INDEX "auth_permission_content_type_id_codename_01ab375a_uniq" ON "auth_permission" ("content_type_id", "codename");
CREATE INDEX "auth_permission_content_type_id_2f476e4b" ON "auth_permission" ("content_type_id");
CREATE INDEX "dialog_recent" ON "dialogs_dialog" ("owner_id", "active_at" DESC);
CREATE INDEX "dialogs_dialog_agent_id_ebae33e4" ON "dialogs_dialog" ("agent_id");
CREATE INDEX "dialogs_dialog_owner_id_049165d2" ON "dialogs_dialog" ("owner_id");
CREATE INDEX "dialogs_apikey_owner_id_16729969" ON "dialogs_apikey" ("owner_id");
CREATE INDEX "dialogs_artifact_dialog_id_7631366d" ON "dialogs_artifact" ("dialog_id");
CREATE INDEX "dialogs_question_dialog_id_2b65d606" ON "dialogs_question" ("dialog_id");
CREATE INDEX "dialogs_question_resolved_by_id_1cf921c8" ON "dialogs_question" ("resolved_by_id");
CREATE INDEX "dialogs_reminder_dialog_id_04e84eab" ON "dialogs_reminder" ("dialog_id");
CREATE INDEX "dialogs_sitesettings_pruning_agent_id_362c5ec5" ON "dialogs_sitesettings" ("pruning_agent_id");
CREATE INDEX "dialogs_client_key_id_6c6cef19" ON "dialogs_client" ("key_id");
CREATE INDEX "generation_newest" ON "dialogs_generation" ("dialog_id", "id" DESC);
CREATE UNIQUE INDEX "one_running_generation_per_dialog" ON "dialogs_generation" ("dialog_id") WHERE "outcome" = 'running';
CREATE UNIQUE INDEX "one_open_question_per_dialog" ON "dialogs_question" ("dialog_id") WHERE "state" = 'open';
CREATE INDEX "dialogs_round_dialog_id_8b3c82c5" ON "dialogs_round" ("dialog_id");
CREATE INDEX "dialogs_turn_generation_id_4c27a21d" ON "dialogs_turn" ("generation_id");
CREATE INDEX "turn_position" ON "dialogs_turn" ("dialog_id", "position");
CREATE INDEX "client_conversation" ON "dialogs_client" ("key_id", "said");
CREATE INDEX "dialog_by_state" ON "dialogs_dialog" ("state");
CREATE INDEX "remediation_latest" ON "remediation_remediationrun" ("dialog_id", "round_number", "id" DESC);
CREATE INDEX "archive_newest" ON "remediation_removedunit" ("dialog_id", "id" DESC);
CREATE INDEX "remediation_proposal_agent_id_df486835" ON "remediation_proposal" ("agent_id");
CREATE INDEX "remediation_proposal_decided_by_id_4dbfa2de" ON "remediation_proposal" ("decided_by_id");
CREATE INDEX "remediation_remediationrun_dialog_id_b0f3c0f0" ON "remediation_remediationrun" ("dialog_id");
CREATE INDEX "remediation_remediationrun_undone_by_id_4a2be824" ON "remediation_remediationrun" ("undone_by_id");
CREATE INDEX "remediation_removedunit_dialog_id_8da363d7" ON "remediation_removedunit" ("dialog_id");
CREATE INDEX "remediation_removedunit_run_id_1af3c704" ON "remediation_removedunit" ("run_id");
CREATE UNIQUE INDEX "one_open_cleanup_task_per_dialog" ON "remediation_cleanuptask" ("dialog_id") WHERE "state" = 'open';
CREATE INDEX "remediation_cleanuptask_dialog_id_457932c7" ON "remediation_cleanuptask" ("dialog_id");
CREATE INDEX "remediation_cleanuptask_done_by_id_32e78790" ON "remediation_cleanuptask" ("done_by_id");
CREATE INDEX "remediation_contextevent_dialog_id_70f3858d" ON "remediation_contextevent" ("dialog_id");
CREATE INDEX "context_event_recent" ON "remediation_contextevent" ("dialog_id", "code", "created_at" DESC);
CREATE INDEX "django_session_expire_date_a5c62663" ON "django_session" ("expire_date");
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('django_migrations',26);
INSERT INTO "sqlite_sequence" VALUES('django_admin_log',0);
INSERT INTO "sqlite_sequence" VALUES('django_content_type',26);
INSERT INTO "sqlite_sequence" VALUES('auth_permission',105);
INSERT INTO "sqlite_sequence" VALUES('auth_group',2);
INSERT INTO "sqlite_sequence" VALUES('auth_user',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_personsettings',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_round',4);
INSERT INTO "sqlite_sequence" VALUES('dialogs_turn',11);
INSERT INTO "sqlite_sequence" VALUES('dialogs_event',4);
INSERT INTO "sqlite_sequence" VALUES('auth_group_permissions',2);
INSERT INTO "sqlite_sequence" VALUES('auth_user_groups',2);
INSERT INTO "sqlite_sequence" VALUES('health_healthsnapshot',5);
INSERT INTO "sqlite_sequence" VALUES('remediation_remediationrun',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_removedunit',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_contextevent',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_cleanuptask',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_proposal',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_contextsettings',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_generation',5);
INSERT INTO "sqlite_sequence" VALUES('dialogs_reminder',3);
INSERT INTO "sqlite_sequence" VALUES('dialogs_apikey',1);
INSERT INTO "sqlite_sequence" VALUES('dialogs_sitesettings',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_artifact',2);
COMMIT;
