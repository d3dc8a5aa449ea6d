from django.urls import path

from waiting_times import views

urlpatterns = [path("waiting-times/", views.show, name="waiting-times")]
